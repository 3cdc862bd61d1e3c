"""The loop of bench-agent.rs with LangGraph: a model and a tool that answer at once, every step on disk."""

import json
import sys
import time
from importlib.metadata import version
from typing import Annotated, TypedDict
import operator

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

path, calls, engagements = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


class State(TypedDict):
    messages: Annotated[list, operator.add]


def model(state):
    results = sum(1 for message in state["messages"] if message["role"] == "tool")
    if results < calls:
        return {"messages": [{"role": "assistant", "call": {"tool": "look", "inputs": {"n": 1}}}]}
    return {"messages": [{"role": "assistant", "text": "done"}]}


def tool(state):
    inputs = state["messages"][-1]["call"]["inputs"]
    assert inputs["n"] == 1
    return {"messages": [{"role": "tool", "outputs": {"found": True}}]}


def further(state):
    return "tool" if "call" in state["messages"][-1] else END


builder = StateGraph(State)
builder.add_node("model", model)
builder.add_node("tool", tool)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", further, ["tool", END])
builder.add_edge("tool", "model")

with SqliteSaver.from_conn_string(path) as saver:
    graph = builder.compile(checkpointer=saver)

    def one(name):
        configuration = {"configurable": {"thread_id": name}, "recursion_limit": 10 * calls + 10}
        said = {"messages": [{"role": "user", "text": "look"}]}
        state = graph.invoke(said, configuration, durability="sync")
        assert state["messages"][-1]["text"] == "done"
        return len(list(graph.get_state_history(configuration)))

    steps = one("warm")
    begun = time.perf_counter()
    for number in range(engagements):
        configuration = {"configurable": {"thread_id": str(number)}, "recursion_limit": 10 * calls + 10}
        graph.invoke({"messages": [{"role": "user", "text": "look"}]}, configuration, durability="sync")
    seconds = time.perf_counter() - begun

# Its SQLite checkpointer has one connection and one lock, so engagements at once are engagements one by one.
print(json.dumps({
    "call_micros": seconds * 1e6 / (engagements * calls),
    "per_second": engagements / seconds,
    "steps": steps,
    "version": version("langgraph"),
}))
