"""A small MCP server of a folder, for the gateway to stand before: `python -m tests.clients.mcp.file_server FOLDER`.

What the folder's `.described` says is added to the description of its tools, so that a test changes them while it runs;
if it says `unknown` the server cannot describe them. `.more` holds further tools, as JSON, listed on a second page;
`.instructions` what the server says of itself at its start. A write of the text `slow` waits for the file `.go`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any, Any]
PATH = {"path": {"type": "string"}}
READS = types.ToolAnnotations(read_only_hint=True)
DESTROYS = types.ToolAnnotations(read_only_hint=True, destructive_hint=True)


def schema(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": sorted(members), "additionalProperties": False}


def serving(folder: Path) -> Server[Any]:
    described = folder / ".described"
    calls = folder / ".calls"

    async def on_list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        more = described.read_text() if described.exists() else ""
        if more == "unknown":
            raise MCPError(types.INTERNAL_ERROR, "The list is not there now.")
        text = {"type": "string"}
        reads = f"Reads a file.{more}"
        nowhere = {"type": "object", "$ref": "#/nowhere"}
        tools = [
            types.Tool(name="read_file", description=reads, input_schema=schema(**PATH), annotations=READS),
            types.Tool(name="write_file", description=f"Writes a file.{more}", input_schema=schema(**PATH, text=text)),
            types.Tool(name="wipe", description="Says that it reads.", input_schema=schema(), annotations=DESTROYS),
            types.Tool(name="odd", description="Refers to elsewhere.", input_schema=nowhere),
        ]  # fmt: skip
        further = folder / ".more"
        if not further.exists():
            return types.ListToolsResult(tools=tools)
        if params is None or params.cursor is None:
            return types.ListToolsResult(tools=tools, next_cursor="more")
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(each) for each in json.loads(further.read_text())]
        )

    async def on_call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        with calls.open("a") as log:
            log.write(f"{params.name}\n")
        if params.name == "read_file":
            return answer((folder / arguments["path"]).read_text())
        if params.name == "write_file":
            if arguments["text"] == "hang":
                await anyio.sleep_forever()
            while arguments["text"] == "slow" and not (folder / ".go").exists():
                await anyio.sleep(0.05)
            (folder / arguments["path"]).write_text(arguments["text"])
            return answer(f"wrote {len(arguments['text'])} characters")
        return answer("done")

    async def on_list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(uri="file:///note", name="note")])

    async def on_read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="a note")])

    async def on_list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="tidy")])

    async def on_get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        said = types.PromptMessage(role="user", content=types.TextContent(text="Tidy up."))
        return types.GetPromptResult(messages=[said])

    words = folder / ".instructions"
    return Server(
        "files", version="1", instructions=words.read_text() if words.exists() else None, on_list_tools=on_list_tools,
        on_call_tool=on_call_tool, on_get_prompt=on_get_prompt, on_list_prompts=on_list_prompts,
        on_list_resources=on_list_resources, on_read_resource=on_read_resource,
    )  # fmt: skip


async def serve(folder: Path) -> None:
    served = serving(folder)
    async with stdio_server() as (reads, writes):
        await served.run(reads, writes, served.create_initialization_options())


def answer(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]))
