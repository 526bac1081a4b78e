"""One scenario for each client, against a gateway before the mock upstream."""

import asyncio
import os

import anthropic
import openai
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

ROOT, KEY = os.environ["GATEWAY_URL"], os.environ["GATEWAY_KEY"]
COMMON = {"base_url": ROOT + "/v1", "api_key": KEY, "max_retries": 0}
SCRIPT = 'What is it like?\ncall get_weather {"city": "Rome"}'
SAID = "The tool get_weather answered: 21 degrees in Rome"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = [{"role": "user", "content": "say Hello there"}]


class Person(BaseModel):
    name: str
    age: int


def openai_sync():
    client = openai.OpenAI(**COMMON)
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": SCRIPT}]
    first = client.chat.completions.create(model="demo", messages=messages, tools=tools).choices[0].message
    call = first.tool_calls[0]
    messages += [first, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees in Rome"}]
    assert client.chat.completions.create(model="demo", messages=messages, tools=tools).choices[0].message.content == SAID
    with client.chat.completions.stream(model="demo", messages=HELLO) as stream:
        assert stream.get_final_completion().choices[0].message.content == "Hello there"
    parsed = client.chat.completions.parse(model="demo", messages=[{"role": "user", "content": "Who?"}], response_format=Person)
    assert isinstance(parsed.choices[0].message.parsed, Person)
    with client.responses.stream(model="demo", input="say Hello there") as stream:
        assert stream.get_final_response().output_text == "Hello there"
    assert client.responses.parse(model="demo", input="Who?", text_format=Person).output_parsed.age >= 0
    assert client.completions.create(model="demo", prompt="say Hello there").choices[0].text == "Hello there"
    assert len(client.embeddings.create(model="vectors", input=["a", "b"]).data) == 2
    assert client.moderations.create(input="violence", model="demo").results[0].flagged
    assert client.audio.speech.create(model="demo", voice="alloy", input="hi").read()[:4] == b"RIFF"
    try:
        client.chat.completions.create(model="nope", messages=HELLO)
        raise AssertionError("the model is not known")
    except openai.NotFoundError as err:
        assert err.code == "model_not_found"


async def openai_async():
    async with openai.AsyncOpenAI(**COMMON) as client:
        text = ""
        async for chunk in await client.chat.completions.create(model="demo", messages=HELLO, stream=True):
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
        assert text == "Hello there"
        text = ""
        async for chunk in await client.completions.create(model="demo", prompt="say Hello there", stream=True):
            text += "".join(choice.text for choice in chunk.choices)
        assert text == "Hello there"


def anthropic_sync():
    client = anthropic.Anthropic(base_url=ROOT, api_key=KEY, max_retries=0)
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": SCRIPT}]
    with client.messages.stream(model="demo", max_tokens=100, messages=messages, tools=tools) as stream:
        first = stream.get_final_message()
    assert first.stop_reason == "tool_use"
    call = next(block for block in first.content if block.type == "tool_use")
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees in Rome"}]},
    ]
    assert client.messages.create(model="demo", max_tokens=100, messages=messages, tools=tools).content[0].text == SAID


async def anthropic_async():
    async with anthropic.AsyncAnthropic(base_url=ROOT, api_key=KEY, max_retries=0) as client:
        async with client.messages.stream(model="demo", max_tokens=100, messages=HELLO) as stream:
            assert "".join([text async for text in stream.text_stream]) == "Hello there"


@tool
def get_weather(city: str) -> str:
    """the weather"""
    return f"21 degrees in {city}"


def langchain_sync():
    for responses in (False, True):
        model = ChatOpenAI(model="demo", use_responses_api=responses, **COMMON)
        answer = model.bind_tools([get_weather]).invoke(SCRIPT)
        assert [call["args"] for call in answer.tool_calls] == [{"city": "Rome"}]
        assert "".join(chunk.text for chunk in model.stream("say Hello there")) == "Hello there"
        assert isinstance(model.with_structured_output(Person).invoke("Who?"), Person)
    assert OpenAI(model="demo", **COMMON).invoke("say Hello there") == "Hello there"
    vectors = OpenAIEmbeddings(model="vectors", check_embedding_ctx_length=False, **COMMON)
    assert len(vectors.embed_documents(["a", "b"])) == 2


async def langchain_async():
    model = ChatOpenAI(model="demo", **COMMON)
    assert (await model.ainvoke("say Hello there")).text == "Hello there"
    assert "".join([chunk.text async for chunk in model.astream("say Hello there")]) == "Hello there"


for scenario in (openai_sync, openai_async, anthropic_sync, anthropic_async, langchain_sync, langchain_async):
    outcome = scenario()
    if outcome is not None:
        asyncio.run(outcome)
    print("ok", scenario.__name__, flush=True)
