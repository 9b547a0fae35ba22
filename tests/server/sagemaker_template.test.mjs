// The template of deploy/sagemaker: checked against AWS' published types, and what it sets against the program.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseTemplate, problemsOf } from "./cloudformation.mjs";
import { environment, program } from "./harness.mjs";

const text = readFileSync(new URL("../../deploy/sagemaker/endpoint.yaml", import.meta.url), "utf8");
const template = () => parseTemplate(text);

test("the template is what the published types allow", async () => assert.deepEqual(await problemsOf(template()), []));

test("the check finds what is wrong", async () => {
  const after = async (change) => {
    const changed = template();
    change(changed.Resources, changed);
    return (await problemsOf(changed)).join("\n");
  };
  const variant = (all) => all.Configuration.Properties.ProductionVariants[0];
  assert.match(await after((all) => (variant(all).InstanceSort = "x")), /ProductionVariants\[0\]: InstanceSort is unknown/);
  assert.match(await after((all) => delete variant(all).VariantName), /VariantName is missing/);
  assert.match(await after((all) => (variant(all).InitialInstanceCount = "one")), /InitialInstanceCount: expected integer/);
  assert.match(await after((all) => (variant(all).InitialInstanceCount = { Ref: "Image" })), /Image is a text/);
  assert.match(await after((all) => (all.Model.Type = "AWS::SageMaker::Modell")), /there is no type AWS::SageMaker::Modell/);
  assert.match(await after((all) => (all.Model.Properties.ExecutionRoleArn = { "Fn::GetAtt": ["Role", "Arm"] })), /no attribute Arm/);
  assert.match(await after((all) => (all.Model.Properties.PrimaryContainer.Image = { "Fn::Sub": "${Registry}/x" })), /there is no Registry/);
  assert.match(await after((all) => (all.Model.Properties.PrimaryContainer.Mode = "ManyModels")), /expected one of SingleModel,MultiModel/);
  assert.match(await after((all) => (variant(all).InferenceAmiVersion["Fn::If"][0] = "HasAmy")), /no condition HasAmy/);
  assert.match(await after((all) => (all.Errors.DependsOn = "Endpoint")), /waits for/);
});

test("its settings are the program's, and keep to the platform's limits", () => {
  const { Properties } = template().Resources.Model;
  const { status, stdout, stderr } = spawnSync(program, ["serve", "--print-config"],
    { encoding: "utf8", env: environment(Properties.PrimaryContainer.Environment) });
  assert.equal(status, 0, stderr);
  const number = (key) => Number(stdout.match(new RegExp(`^${key} = (\\d+)`, "m"))[1]);
  assert.ok(number("request_timeout_s") < 60);
  assert.ok(number("grace_s") < 30);
  assert.ok(number("idle_timeout_s") >= 5 * 60, "as long as five pings that are missed");
});

test("scaling, alarms and endpoint are about the same variant", () => {
  const { Configuration, Scaling, ScalingPolicy, Endpoint, ...rest } = template().Resources;
  const [{ VariantName, ContainerStartupHealthCheckTimeoutInSeconds }] = Configuration.Properties.ProductionVariants;
  assert.ok(ContainerStartupHealthCheckTimeoutInSeconds >= 60 && ContainerStartupHealthCheckTimeoutInSeconds <= 3600);
  assert.equal(Scaling.Properties.ResourceId["Fn::Sub"], `endpoint/\${EndpointName}/variant/${VariantName}`);
  assert.deepEqual(Endpoint.Properties.EndpointName, { Ref: "EndpointName" });
  const { PredefinedMetricSpecification } = ScalingPolicy.Properties.TargetTrackingScalingPolicyConfiguration;
  assert.match(PredefinedMetricSpecification.PredefinedMetricType, /ConcurrentRequestsPerModel/);
  const dimensions = Object.values(rest).filter(({ Type }) => Type === "AWS::CloudWatch::Alarm")
    .map(({ Properties }) => Properties.Dimensions ?? Properties.Metrics.find(({ MetricStat }) => MetricStat).MetricStat.Metric.Dimensions);
  assert.equal(dimensions.length, 3);
  for (const of of dimensions) assert.deepEqual(of, [{ Name: "EndpointName", Value: { Ref: "EndpointName" } }, { Name: "VariantName", Value: VariantName }]);
});
