"""Uses `trace mcp` as agents do: through the client of the protocol's own Python package.

client.py TRACE DIR: TRACE is the command, DIR has a.fxt and b.fxt. Prints a JSON object of what it has found.
"""

import asyncio
import json
import sys

import jsonschema
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client import Client

# What every text of a tool has.
ANSWER = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {
        "trace": {"type": "string"},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "window_ns": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        "losses": {"type": "object", "required": ["lost", "balance"]},
        "sql": {"type": "string"},
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array"},
        "next": {"type": "string", "maxLength": 40},
    },
}

SQL = "SELECT ts, name FROM slices ORDER BY ts, id"


async def call(client, schemas, tool, arguments):
    """Calls a tool with arguments that its schema allows, and checks the answer."""
    jsonschema.validate(arguments, schemas[tool])
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert [part.type for part in result.content] == ["text"], result
    answer = json.loads(result.content[0].text)
    jsonschema.validate(answer, ANSWER)
    assert len(result.model_dump_json()) < 8300
    return answer


async def use(client):
    """Lists the tools, calls each, and reads all pages of an answer."""
    tools = (await client.list_tools()).tools
    schemas = {tool.name: tool.input_schema for tool in tools}
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.description and tool.title, tool
    found = {"tools": list(schemas)}
    for tool, arguments in [
        ("overview", {}),
        ("overview", {"trace": "a.fxt"}),
        ("top", {"trace": "a.fxt", "sort": "self", "limit": 3}),
        ("window", {"trace": "a.fxt", "min_dur_ns": 1}),
        ("query", {"trace": "a.fxt", "sql": "SELECT count(*) AS n FROM slices"}),
        ("compare", {"before": "a.fxt", "after": "b.fxt", "sort": "p99"}),
    ]:
        answer = await call(client, schemas, tool, arguments)
        found[tool] = answer["rows"]
    rows, cursor, pages = [], {}, 0
    while cursor is not None:
        answer = await call(client, schemas, "query", {"trace": "a.fxt", "sql": SQL, **cursor})
        rows += answer["rows"]
        pages += 1
        cursor = {"cursor": answer["next"]} if "next" in answer else None
    found["rows"], found["pages"] = rows, pages
    # An error of a tool is a result; one of the protocol is an exception.
    refused = await client.call_tool("overview", {"trace": "../a.fxt"})
    assert refused.is_error and "leads out" in refused.content[0].text, refused
    try:
        await client.call_tool("record", {"output": "c.fxt", "duration_s": 1})
        raise AssertionError("record was not refused")
    except Exception as error:  # pylint: disable=broad-except
        assert "no such tool" in str(error), error
    return found


async def main():
    command, directory = sys.argv[1:]
    server = StdioServerParameters(command=command, args=["mcp", directory])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            begun = await session.initialize()
            handshake = await use(session)
    # The client that agrees on the newest version by itself.
    async with Client(stdio_client(server)) as client:
        newest = await use(client)
        version = client.protocol_version
    assert newest == handshake
    print(json.dumps({"versions": [begun.protocol_version, version], **handshake}))


asyncio.run(main())
