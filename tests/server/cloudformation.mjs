// Checks a CloudFormation template against AWS' published specification of resource types, without a network.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { clientsDir } from "./clients.mjs";

const require = createRequire(join(clientsDir, "package.json"));
const { parseDocument, isMap, isSeq } = require("yaml");

// "!Ref x" is {Ref: x}, "!Sub x" is {"Fn::Sub": x}, "!GetAtt A.B" is {"Fn::GetAtt": [A, B]}.
const kinds = [["scalar", (node) => node], ["seq", isSeq], ["map", isMap]];
const tags = ["Ref", "Sub", "GetAtt", "If", "Not", "And", "Or", "Equals", "Join", "Select", "Condition"].flatMap((name) =>
  kinds.map(([kind]) => ({
    tag: `!${name}`,
    ...(kind === "scalar" ? {} : { collection: kind }),
    resolve: (value) => {
      const plain = kind === "scalar" ? value : value.toJSON();
      const key = ["Ref", "Condition"].includes(name) ? name : `Fn::${name}`;
      return { [key]: name === "GetAtt" && kind === "scalar" ? [plain.slice(0, plain.indexOf(".")), plain.slice(plain.indexOf(".") + 1)] : plain };
    },
  })));

export function parseTemplate(text) {
  const document = parseDocument(text, { customTags: tags });
  if (document.errors.length || document.warnings.length) throw [...document.errors, ...document.warnings][0];
  return plain(document.contents);
}

// What tags resolved to may stand inside nodes of YAML.
function plain(node) {
  if (node?.items && isMap(node)) return Object.fromEntries(node.items.map(({ key, value }) => [String(key?.value ?? key), plain(value)]));
  if (node?.items && isSeq(node)) return node.items.map(plain);
  if (node && typeof node === "object" && "value" in node && node.constructor.name === "Scalar") return plain(node.value);
  return node?.toJSON?.() ?? node;
}

const pseudo = ["AccountId", "NoValue", "NotificationARNs", "Partition", "Region", "StackId", "StackName", "URLSuffix"].map((name) => `AWS::${name}`);
const functionOf = (value) => {
  const keys = value && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  return keys.length === 1 && (keys[0] === "Ref" || keys[0].startsWith("Fn::")) ? keys[0] : null;
};

class Check {
  constructor(database, template) {
    this.database = database;
    this.template = template;
    this.problems = [];
    this.uses = new Map();  // resource -> resources that it waits for
  }

  typeOf(name) {
    const type = this.template.Resources[name]?.Type;
    return type && this.database.lookup("resource", "cloudFormationType", "equals", type)[0];
  }

  say(path, what) {
    this.problems.push(`${path}: ${what}`);
  }

  named(path, name, from) {
    if (this.template.Resources[name]) return void (from && this.uses.get(from).add(name));
    if (!this.template.Parameters?.[name] && !pseudo.includes(name)) this.say(path, `there is no ${name}`);
  }

  attribute(path, [name, attribute], from) {
    this.named(path, name, from);
    const resource = this.typeOf(name);
    if (resource && !resource.attributes[attribute] && !resource.primaryIdentifier?.includes(attribute)) this.say(path, `${resource.cloudFormationType} has no attribute ${attribute}`);
  }

  // Names that functions use, wherever they stand.
  names(path, value, from) {
    if (Array.isArray(value)) return value.forEach((item, i) => this.names(`${path}[${i}]`, item, from));
    if (!value || typeof value !== "object") return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "Ref") this.named(path, inner, from);
      else if (key === "Fn::GetAtt") this.attribute(path, inner, from);
      else if (key === "Fn::Sub")
        for (const [, name] of inner.matchAll(/\$\{([^!}][^}]*)\}/g)) {
          if (name.includes(".")) this.attribute(path, [name.slice(0, name.indexOf(".")), name.slice(name.indexOf(".") + 1)], from);
          else this.named(path, name, from);
        }
      else if (key === "Fn::If") {
        if (!this.template.Conditions?.[inner[0]]) this.say(path, `there is no condition ${inner[0]}`);
        this.names(path, inner.slice(1), from);
      } else this.names(`${path}.${key}`, inner, from);
    }
  }

  // A value against a type of the specification.
  value(path, value, type) {
    const name = functionOf(value);
    if (name === "Fn::If") return value[name].slice(1).forEach((branch) => this.value(path, branch, type));
    if (name === "Ref" && value.Ref === "AWS::NoValue") return;
    if (name === "Ref" && this.template.Parameters?.[value.Ref]) {
      const number = this.template.Parameters[value.Ref].Type === "Number";
      if (["integer", "number"].includes(type.type) && !number) this.say(path, `expected a number, ${value.Ref} is a text`);
      return;
    }
    if (name) return void (["array", "ref", "boolean"].includes(type.type) && this.say(path, `expected ${type.type}, got ${name}`));
    const fits = {
      string: () => typeof value === "string",
      boolean: () => typeof value === "boolean",
      integer: () => Number.isInteger(value),
      number: () => typeof value === "number",
      json: () => true,
      tag: () => typeof value === "object",
      array: () => Array.isArray(value),
      map: () => typeof value === "object",
      ref: () => typeof value === "object" && !Array.isArray(value),
      union: () => true,
    }[type.type];
    if (!fits || !fits()) return this.say(path, `expected ${type.type}, got ${JSON.stringify(value)}`);
    if (type.allowedValues && !type.allowedValues.includes(value)) this.say(path, `expected one of ${type.allowedValues}, got ${value}`);
    if (type.type === "array") value.forEach((item, i) => this.value(`${path}[${i}]`, item, type.element));
    if (type.type === "map") for (const [key, item] of Object.entries(value)) this.value(`${path}.${key}`, item, type.element);
    if (type.type === "ref") this.members(path, value, this.database.get("typeDefinition", type.reference).properties);
  }

  members(path, value, properties) {
    for (const [key, item] of Object.entries(value)) {
      if (properties[key]) this.value(`${path}.${key}`, item, properties[key].type);
      else this.say(path, `${key} is unknown`);
    }
    for (const [key, property] of Object.entries(properties)) if (property.required && !(key in value)) this.say(path, `${key} is missing`);
  }

  cycle(name, above = []) {
    if (above.includes(name)) return [...above.slice(above.indexOf(name)), name];
    for (const next of this.uses.get(name)) {
      const found = this.cycle(next, [...above, name]);
      if (found) return found;
    }
    return null;
  }

  run() {
    const { Resources, Outputs = {}, Conditions = {} } = this.template;
    const sections = ["AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Rules", "Mappings", "Conditions", "Resources", "Outputs"];
    for (const section of Object.keys(this.template)) if (!sections.includes(section)) this.say(section, "is no section");
    for (const [name, resource] of Object.entries(Resources)) {
      this.uses.set(name, new Set([resource.DependsOn ?? []].flat()));
      const type = this.typeOf(name);
      if (!type) this.say(name, `there is no type ${resource.Type}`);
      else this.members(name, resource.Properties ?? {}, type.properties);
      this.names(name, resource.Properties, name);
      for (const other of this.uses.get(name)) if (!Resources[other]) this.say(name, `there is no ${other}`);
    }
    this.names("Outputs", Outputs);
    this.names("Conditions", Conditions);
    this.names("Rules", this.template.Rules);
    if (!this.problems.length) for (const name of Object.keys(Resources)) {
      const cycle = this.cycle(name);
      if (cycle) return [`${cycle.join(" waits for ")}`];
    }
    return this.problems;
  }
}

let database;  // 30,000 types: read once

// Every problem of a parsed template as a sentence; none: it is one that CloudFormation takes, as far as types tell.
export async function problemsOf(template) {
  database ??= (await import(pathToFileURL(require.resolve("@aws-cdk/aws-service-spec")).href)).loadAwsServiceSpec();
  return new Check(await database, template).run();
}
