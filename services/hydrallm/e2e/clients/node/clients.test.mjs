// One scenario for each client, against a gateway before the mock upstream.
import assert from "node:assert/strict";
import { test } from "node:test";

const root = process.env.GATEWAY_URL, key = process.env.GATEWAY_KEY;
const weather = { name: "get_weather", description: "the weather", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
const script = 'What is it like?\ncall get_weather {"city": "Rome"}';
const said = "The tool get_weather answered: 21 degrees in Rome";
const run = ({ city }) => `21 degrees in ${city}`;

test("openai: chat, stream helper, tools, parse", async () => {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");
  const client = new OpenAI({ baseURL: root + "/v1", apiKey: key, maxRetries: 0 });

  const runner = client.chat.completions.runTools({
    model: "demo", stream: true, messages: [{ role: "user", content: script }],
    tools: [{ type: "function", function: { ...weather, parse: JSON.parse, function: run } }],
  });
  assert.equal(await runner.finalContent(), said);

  const stream = client.chat.completions.stream({ model: "demo", messages: [{ role: "user", content: "say Hello there" }], stream_options: { include_usage: true } });
  assert.equal((await stream.finalChatCompletion()).choices[0].message.content, "Hello there");
  assert.ok((await stream.totalUsage()).total_tokens > 0);

  const parsed = await client.chat.completions.parse({
    model: "demo", messages: [{ role: "user", content: "Who is it?" }],
    response_format: zodResponseFormat(z.object({ name: z.string(), age: z.number().int() }), "person"),
  });
  assert.equal(typeof parsed.choices[0].message.parsed.age, "number");

  const text = await client.completions.create({ model: "demo", prompt: "say Hello there" });
  assert.equal(text.choices[0].text, "Hello there");
  const flagged = await client.moderations.create({ model: "demo", input: "violence" });
  assert.equal(flagged.results[0].flagged, true);
  const heard = await client.audio.transcriptions.create({ model: "demo", file: new File(["xy"], "a.wav") });
  assert.equal(heard.text, "The file is a.wav of 2 bytes.");
  await assert.rejects(client.chat.completions.create({ model: "nope", messages: [{ role: "user", content: "hi" }] }), OpenAI.NotFoundError);
});

test("openai: responses, stream helper, tools", async () => {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: root + "/v1", apiKey: key, maxRetries: 0 });
  const tools = [{ type: "function", strict: false, ...weather }];
  const input = [{ role: "user", content: script }];
  const stream = client.responses.stream({ model: "demo", input, tools });
  const first = await stream.finalResponse();
  const calls = first.output.filter((item) => item.type === "function_call");
  assert.equal(calls.length, 1);
  input.push(...first.output, { type: "function_call_output", call_id: calls[0].call_id, output: run(JSON.parse(calls[0].arguments)) });
  const second = await client.responses.create({ model: "demo", input, tools });
  assert.equal(second.output_text, said);
  assert.equal(second.status, "completed");
});

test("@anthropic-ai/sdk: messages, stream helper, tools", async () => {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: root, apiKey: key, maxRetries: 0 });
  const tools = [{ name: weather.name, description: weather.description, input_schema: weather.parameters }];
  const messages = [{ role: "user", content: script }];
  const first = await client.messages.stream({ model: "demo", max_tokens: 100, messages, tools }).finalMessage();
  assert.equal(first.stop_reason, "tool_use");
  const call = first.content.find((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: run(call.input) }] });
  const second = await client.messages.create({ model: "demo", max_tokens: 100, messages, tools });
  assert.equal(second.content[0].text, said);
  assert.ok(second.usage.output_tokens > 0);
  await assert.rejects(client.messages.create({ model: "nope", max_tokens: 1, messages: [{ role: "user", content: "hi" }] }), Anthropic.NotFoundError);
});

test("ai and @ai-sdk/openai: responses, completions, chat, embeddings", async () => {
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { embedMany, generateText, stepCountIs, streamText, tool } = await import("ai");
  const { z } = await import("zod");
  const openai = createOpenAI({ baseURL: root + "/v1", apiKey: key });
  const tools = { get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async (input) => run(input) }) };
  for (const model of [openai("demo"), openai.chat("demo")]) {
    const answer = await generateText({ model, prompt: script, tools, stopWhen: stepCountIs(3), maxRetries: 0 });
    assert.equal(answer.text, said);
  }
  for (const model of [openai("demo"), openai.chat("demo"), openai.completion("demo")]) {
    let text = "";
    for await (const piece of streamText({ model, prompt: "say Hello there", maxRetries: 0 }).textStream) text += piece;
    assert.equal(text, "Hello there");
  }
  assert.equal((await embedMany({ model: openai.embedding("vectors"), values: ["a", "b"] })).embeddings.length, 2);
});

test("@openai/agents: an agent with a tool", async () => {
  const { Agent, OpenAIProvider, Runner, tool } = await import("@openai/agents");
  const { z } = await import("zod");
  const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL: root + "/v1", apiKey: key }), tracingDisabled: true });
  const get_weather = tool({ name: weather.name, description: weather.description, parameters: z.object({ city: z.string() }), execute: async (input) => run(input) });
  const agent = new Agent({ name: "Weather", model: "demo", tools: [get_weather] });
  assert.equal((await runner.run(agent, script)).finalOutput, said);
});

test("@langchain/openai: chat, responses, legacy completions", async () => {
  const { ChatOpenAI, OpenAI } = await import("@langchain/openai");
  const configuration = { baseURL: root + "/v1" }, common = { model: "demo", apiKey: key, configuration, maxRetries: 0 };
  assert.equal(await new OpenAI(common).invoke("say Hello there"), "Hello there");
  for (const useResponsesApi of [false, true]) {
    const model = new ChatOpenAI({ ...common, useResponsesApi }).bindTools([{ type: "function", function: weather }]);
    const answer = await model.invoke(script);
    assert.deepEqual(answer.tool_calls.map((call) => call.args), [{ city: "Rome" }]);
    let text = "";
    for await (const piece of await model.stream("say Hello there")) text += piece.text;
    assert.equal(text, "Hello there");
  }
});
