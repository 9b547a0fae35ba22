// A strict reader of the Prometheus text format 0.0.4.
import assert from "node:assert/strict";

const sample = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

function readLabels(text) {
  const labels = {};
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const match = label.exec(text);
    assert.ok(match, `bad labels: ${text}`);
    assert.ok(!(match[1] in labels), `label twice: ${text}`);
    labels[match[1]] = match[2];
  }
  return labels;
}

const readNumber = (text) => (text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text));

export class Metrics {
  // Throws when the text is not what the format allows.
  constructor(text) {
    assert.ok(text.endsWith("\n"), "the last line must end");
    this.families = new Map();  // name -> {type, help, samples: [{name, labels, value}]}
    let family;
    for (const line of text.split("\n").slice(0, -1)) {
      const [, mark, name, rest] = line.match(/^# (HELP|TYPE) (\S+) ?(.*)$/) ?? [];
      if (mark) {
        if (family?.name !== name) {
          assert.ok(!this.families.has(name), `family twice: ${name}`);
          family = { name, samples: [] };
          this.families.set(name, family);
        }
        assert.equal(family[mark.toLowerCase()], undefined, `two lines ${mark} ${name}`);
        family[mark.toLowerCase()] = rest;
      } else if (!line.startsWith("#") && line !== "") {
        this.addSample(family, line);
      }
    }
    for (const each of this.families.values()) this.check(each);
  }

  addSample(family, line) {
    const match = line.match(sample);
    assert.ok(match, `not a sample: ${line}`);
    const [, name, labels = "", text] = match;
    const suffix = family.type === "histogram" ? /_(bucket|sum|count)$/ : /$^/;
    assert.equal(name.replace(suffix, ""), family.name, `a sample outside of its family: ${line}`);
    const value = readNumber(text);
    assert.ok(text === "NaN" || !Number.isNaN(value), `not a number: ${line}`);
    family.samples.push({ name, labels: readLabels(labels), value });
  }

  check({ name, type, help, samples }) {
    assert.ok(help, `${name} has no help`);
    assert.match(type, /^(counter|gauge|histogram)$/, name);
    if (type === "counter") {
      assert.match(name, /_total$/);
      samples.forEach(({ value }) => assert.ok(value >= 0, `${name} is ${value}`));
    }
    const keys = samples.map((each) => each.name + JSON.stringify(each.labels));
    assert.equal(new Set(keys).size, keys.length, `${name}: a series twice`);
    if (type === "histogram") this.checkHistogram(name, samples);
  }

  checkHistogram(name, samples) {
    const series = new Map();
    for (const { name: part, labels: { le, ...labels }, value } of samples) {
      const key = JSON.stringify(labels);
      const one = series.get(key) ?? series.set(key, { buckets: [] }).get(key);
      if (part.endsWith("_bucket")) one.buckets.push([readNumber(le), value]);
      else one[part.slice(name.length + 1)] = value;
    }
    for (const { buckets, sum, count } of series.values()) {
      assert.ok(sum !== undefined && count !== undefined, `${name} lacks its sum or count`);
      assert.deepEqual(buckets.at(-1), [Infinity, count], `${name}: the last bucket holds all`);
      for (let i = 1; i < buckets.length; ++i) {
        assert.ok(buckets[i][0] > buckets[i - 1][0] && buckets[i][1] >= buckets[i - 1][1], `${name}: buckets rise`);
      }
    }
  }

  // The sum of all series of a sample name with these labels.
  value(name, labels = {}) {
    const family = this.families.get(name) ?? this.families.get(name.replace(/_(bucket|sum|count)$/, ""));
    const fits = (each) => each.name === name && Object.entries(labels).every(([key, value]) => each.labels[key] === value);
    return (family?.samples ?? []).filter(fits).reduce((sum, each) => sum + each.value, 0);
  }
}
