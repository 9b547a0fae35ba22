// What /openapi.json says of the routes, as the tests use it.
export async function documentOf(server) {
  return (await server.http.get("/openapi.json")).json();
}

// A schema with its references followed and the parts of allOf joined.
export function resolve(document, schema) {
  let found = schema ?? {};
  while (found.$ref) found = found.$ref.slice(2).split("/").reduce((at, key) => at[key], document);
  return found;
}

// What a value may be: the forms of its schema, or the schema itself.
export function formsOf(document, schema) {
  const found = resolve(document, schema);
  return found.oneOf ? found.oneOf.map((form) => resolve(document, form)) : [found];
}

// Something small of that schema, with its texts saying `word`.
export function exampleOf(document, schema, word) {
  const [form] = formsOf(document, schema);
  switch (kindOf(form)) {
    case "object":
      return Object.fromEntries((form.required ?? []).map((name) => [name, exampleOf(document, form.properties[name], word)]));
    case "array":
      return [exampleOf(document, form.items, word), exampleOf(document, form.items, word)];
    case "string":
      return word;
    default:
      return 1;
  }
}

// With the path of a model that is there: [{method, path, operation, schema, forms, types, query}], schema: of the JSON body, where it is an object, absent
// without one; forms: all that the body may be; query: the names of its parameters.
export function operations(document) {
  // With a version they are the same routes.
  return Object.entries(document.paths).filter(([path]) => !path.includes("/versions/")).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const content = operation.requestBody?.content ?? {};
      const forms = content["application/json"] ? formsOf(document, content["application/json"].schema) : [];
      return {
        method: method.toUpperCase(), path: path.replace("{model}", "shoal"), operation, types: Object.keys(content), forms,
        schema: forms.find((form) => kindOf(form) === "object"),
        query: (operation.parameters ?? []).filter((one) => one.in === "query").map((one) => one.name),
      };
    }));
}

export const kindOf = (schema) => (Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type);

// Every field of a body, those of the objects in lists too: [{where: ["items", 0, "text"], schema, required}].
export function fieldsOf(document, schema, where = []) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = resolve(document, property);
    const here = { where: [...where, name], schema: field, required: (schema.required ?? []).includes(name) };
    const items = field.items && resolve(document, field.items);
    const inside = items?.properties ? fieldsOf(document, items, [...where, name, 0]) : [];
    return [here, ...fieldsOf(document, field, [...where, name]), ...inside];
  });
}

// Sets the value at a path and makes what leads there.
export function withField(body, where, value) {
  const copy = structuredClone(body);
  let at = copy;
  for (const [i, key] of where.entries()) {
    if (i + 1 === where.length) at[key] = value;
    else at = at[key] ??= typeof where[i + 1] === "number" ? [] : {};
  }
  return copy;
}

// Small bodies that each POST route answers with 200, where a Kokoro model is loaded too. audio: bytes of a clip in
// base64; model, voice: a model that draws tokens, a voice of the Kokoro model.
export function smallBodies(audio, model, voice) {
  const text = "Hi.";
  return {
    "POST /v1/audio/speech": { model, voice: "default", input: text, response_format: "pcm", seed: 1, max_new_tokens: 12 },
    "POST /v1/tts": { text, seed: 1, max_new_tokens: 12, references: [{ audio, text: "Hm." }] },
    "POST /v1/tts/batch": { items: [{ text, seed: 1 }], max_new_tokens: 12 },
    "POST /v1/vqgan/encode": { audios: [audio] },
    "POST /invocations": { text, seed: 1, max_new_tokens: 12 },
    "POST /v2/models/shoal/infer": { inputs: [{ name: "text_input", shape: [1], datatype: "BYTES", data: [text] }],
      outputs: [{ name: "sample_rate" }], parameters: { seed: 1, max_new_tokens: 12 } },
    "POST /v2/models/shoal/generate": { text_input: text, seed: 1, max_new_tokens: 12 },
    "POST /v2/models/shoal/generate_stream": { text_input: text, seed: 1, max_new_tokens: 12 },
    "POST /dev/captioned_speech": { voice, input: "Hello.", response_format: "pcm", seed: 1 },
    "POST /dev/generate_from_phonemes": { voice, phonemes: "həlˈO", response_format: "pcm", seed: 1 },
    "POST /dev/phonemize": { text: "Hello." },
  };
}

// A body with everything that is required, though perhaps with nonsense in it.
export function filled(document, schema, body = {}) {
  const full = { ...body };
  for (const name of schema?.required ?? []) {
    const kind = kindOf(formsOf(document, schema.properties[name])[0]);
    full[name] ??= kind === "array" ? [] : kind === "string" ? "eHh4" : 1;  // base64 too
  }
  return full;
}
