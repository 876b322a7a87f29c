"""Google ADK: an agent whose tool asks people first. It goes on from its session after a crash.

Needs google-adk 2.13, HOLDPOINT_URL, HOLDPOINT_TOKEN and a key for Gemini.
"""

# mypy: disable-error-code="import-untyped, import-not-found"

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import ToolContext
from google.genai import types

from holdpoint import AsyncHoldpoint, Refused


def refund(order: str, amount: str, tool_context: ToolContext) -> dict[str, Any]:
    """Pay money back to a customer."""
    said = tool_context.tool_confirmation
    if said is None:
        tool_context.request_confirmation(hint=f"Pay back {amount} for order {order}", payload={})
        tool_context.actions.skip_summarization = True  # the model is asked again once people have decided
        return {"status": "People are asked."}
    if not said.confirmed:
        return {"error": said.payload["words"]}
    order, amount = said.payload["arguments"]["order"], said.payload["arguments"]["amount"]  # as people approved it
    print(f"Paying back {amount} for order {order}", flush=True)
    return {"result": f"{amount} EUR for order {order} is paid back. {said.payload['words']}"}


agent = LlmAgent(
    name="teller",
    model="gemini-2.5-flash",
    instruction="Answer customers, and pay back what they are owed.",
    tools=[refund],
)


PLACE = {"app_name": "shop", "user_id": "marit", "session_id": "ticket-1207"}  # of this piece of work


def asking(event: Event) -> list[types.FunctionCall]:
    """Return the calls that wait for people."""
    return [each for each in event.get_function_calls() if each.name == "adk_request_confirmation"]


async def answered(hp: AsyncHoldpoint, call: types.FunctionCall) -> types.Part:
    """Ask people about a call, and return what they said."""
    args = call.args or {}
    asked, hint = args["originalFunctionCall"], args["toolConfirmation"]["hint"]
    try:
        said = await hp.ask(asked["name"], asked["args"], title=hint, key=f"{PLACE['session_id']}-{call.id}")
        words = f"{said.decision.by} changed it: {'; '.join(said.changes)}." if said.changes else ""
        told: dict[str, Any] = {"confirmed": True, "payload": {"arguments": said.arguments, "words": words}}
    except Refused as no:
        told = {"confirmed": False, "payload": {"words": str(no)}}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=told))


async def main() -> None:
    sessions = SqliteSessionService("sessions.db")
    runner = Runner(app_name="shop", agent=agent, session_service=sessions)
    session = await sessions.get_session(**PLACE)
    events = session.events if session else []
    if session is None:
        await sessions.create_session(**PLACE)
    over = {each.id for event in events for each in event.get_function_responses()}
    asked = [each for event in events for each in asking(event) if each.id not in over]  # since before a crash
    parts = [] if events else [types.Part(text="Order 7 arrived broken. I want my 20.00 EUR back.")]
    async with AsyncHoldpoint() as hp:
        while parts or asked:
            parts += [await answered(hp, each) for each in asked]
            message, parts, asked = types.Content(role="user", parts=parts), [], []
            async for event in runner.run_async(user_id="marit", session_id="ticket-1207", new_message=message):
                asked += asking(event)
                if event.is_final_response() and event.content and event.content.parts[0].text:
                    print(event.content.parts[0].text)


asyncio.run(main())
