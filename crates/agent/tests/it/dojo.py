"""Prints the injection tasks, vectors and wordings of AgentDojo as JSON; nothing of them is kept in this project."""

import importlib.abc, importlib.machinery, json, sys
from types import SimpleNamespace
from unittest.mock import MagicMock

# What talks to models is not needed here, and what it needs is not installed.
ABSENT = "agentdojo.agent_pipeline"


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == ABSENT or name.startswith(ABSENT + "."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        module.__spec__ = spec
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Absent())
from agentdojo.attacks import baseline_attacks, important_instructions_attacks
from agentdojo.models import MODEL_NAMES
from agentdojo.task_suite import get_suites

WORDINGS = [
    baseline_attacks.DirectAttack,
    baseline_attacks.IgnorePreviousAttack,
    baseline_attacks.SystemMessageAttack,
    baseline_attacks.InjecAgentAttack,
    important_instructions_attacks.ImportantInstructionsAttackNoNames,
]

MARK = "THE-INJECTED-WORDS"


def leaves(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(key)
            yield from leaves(inner)
    elif isinstance(value, (list, tuple, set)):
        for inner in value:
            yield from leaves(inner)


suites = []
for name, suite in get_suites("v1").items():
    vectors = []
    for vector in suite.get_injection_vector_defaults():
        environment = suite.load_and_inject_default_environment({vector: MARK})
        vectors += [[vector, text] for text in leaves(environment.model_dump(mode="json")) if MARK in text][:1]
    environment = suite.load_and_inject_default_environment({})
    tasks = []
    for task_id, task in suite.injection_tasks.items():
        calls = [[call.function, call.args] for call in task.ground_truth(environment)]
        words = {}
        for wording in WORDINGS:
            attack = wording(suite, SimpleNamespace(name=next(iter(MODEL_NAMES))))
            names = {"user": attack.user_name, "model": attack.model_name, "task": ""}
            words[wording.name] = attack.jailbreak.format(goal=task.GOAL, **names)
        tasks.append({"id": task_id, "words": words, "calls": calls})
    suites.append({"suite": name, "tools": [tool.name for tool in suite.tools], "vectors": vectors, "tasks": tasks})
json.dump(suites, sys.stdout, default=str)
