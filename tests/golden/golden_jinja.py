#!/usr/bin/env python3
"""Writes tests/golden/jinja.txt: chat templates and what Jinja2 renders from them, with the settings of transformers
(trim_blocks, lstrip_blocks, loopcontrols).

    python3 tests/golden/golden_jinja.py > tests/golden/jinja.txt        (needs jinja2)

Each case: a line "==== NAME CHAT PROMPT", the template, a line "----", the text, a line "====". Chats are below and
in tests/unit/test_text_jinja.c."""
import json
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATS = {
    "one": [("user", "Hello")],
    "system": [("system", "Be brief."), ("user", "  What is 2+2? "), ("assistant", "4"), ("user", "And \"3+3\"?\n")],
    "talk": [("user", "Hi"), ("assistant", " Hello there "), ("user", "caf\u00e9 \U0001f680 <b>&'x'</b>")],
    "none": [],
}

# Templates as model cards carry them, written from knowledge of the formats.
CARDS = {
    "chatml": """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    "chatml_lines": """{% for message in messages %}
{%- if loop.first and messages[0]['role'] != 'system' %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "llama3": """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "bitnet": """{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "mistral": """{%- if messages and messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | list %}

{#- the turns must alternate #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}{% if messages and messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""",
    "phi3": """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}""",
    "falcon3": """{%- for message in messages %}
    {%- if message['role'] == 'system' %}
        {{- '<|system|>\\n' + message['content'] + '\\n' }}
    {%- elif message['role'] == 'user' %}
        {{- '<|user|>\\n' + message['content'] + '\\n' }}
    {%- elif message['role'] == 'assistant' %}
        {%- if not loop.last %}
            {{- '<|assistant|>\\n'  + message['content'] + eos_token + '\\n' }}
        {%- else %}
            {{- '<|assistant|>\\n'  + message['content'] + eos_token }}
        {%- endif %}
    {%- endif %}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|assistant|>\\n' }}
    {%- endif %}
{%- endfor %}""",
    "qwen3": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and reasoning_content %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "llama31": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}{{- tools | tojson(indent=4) }}{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
}

# One feature each.
PARTS = """
a {{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 - -2 }}
{{ 'a' ~ 1 ~ none ~ true }} {{ 'x' + 'y' | upper + 'z' }} {{ ('x' + 'y') | upper }}
{{ 1 if messages else 2 }}{{ 'no' if not messages }}{{ 'yes' if messages is defined and nothing is undefined }}
{% if messages | length == 1 %}one{% elif messages | length > 2 %}many{% else %}few{% endif %}
{{ messages[0].content }}|{{ messages[-1]['role'] }}|{{ messages[5] }}|{{ messages[0].nothing }}
{% for m in messages[1:] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }},{% else %}empty{% endfor %}
{% for m in messages[::-1] %}{{ m.role }} {% endfor %}|{% for m in messages[-1:] %}{{ m.role }}{% endfor %}|{{ messages[:-1] | length }}|{{ messages[3:1] | length }}
{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }} {{ m.content }};{% endfor %}
{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}{% for k in messages[0] %}{{ k }} {% endfor %}
{% set x = 1 %}{% for m in messages %}{% set x = x + 1 %}{{ x }}{% endfor %}={{ x }}
{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set ns.s = ns.s + m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}
{% for m in messages %}{% if loop.index == 2 %}{% continue %}{% endif %}{% if loop.index == 4 %}{% break %}{% endif %}{{ m.role }},{% endfor %}
{{ messages | tojson }} {{ messages[0] | tojson(indent=2) }} {{ [1, true, none, 'x'] | tojson }} {{ [] | tojson(indent=1) }}
{{ 'hello world' | title }} {{ 'HELLO' | capitalize }} {{ 'hELLO' | lower }} {{ ' x ' | trim }}. {{ 'abc' | length }} {{ 'abc'[1] }} {{ 'abcdef'[1:-1] }} {{ 'abc'[-2:] }} {{ 'abc'[9:] }}
{{ 'a,b,c'.split(',') | join('-') }} {{ 'a,b,c'.split(',', 1)[1] }} {{ 'aXbX'.replace('X', '--') }} {{ 'xxabxx'.strip('x') }} {{ 'xxa'.lstrip('x') }} {{ 'axx'.rstrip('x') }}
{{ 'user' in ['user', 'x'] }} {{ 'ell' in 'hello' }} {{ 'role' in messages[0] }} {{ 'z' not in 'abc' }} {{ 3 in [1, 2] }}
{{ nothing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d', true) }} {{ messages | first | tojson }} {{ (messages | last).role }}
{{ (1, 2) | length }} {{ ([1] + [2, 3]) | length }} {{ {'a': 1, "b": [2]}['b'][0] }} {{ {'a': 1}.get('z', 'no') }} {{ {'a': 1}.a }}
{{ 1 < 2 and 'a' < 'b' }} {{ not 1 > 2 }} {{ 1 != 2 or x }} {{ 1 is odd }} {{ 2 is even }} {{ 'x' is string }} {{ messages is iterable }} {{ messages[0] is mapping }} {{ none is none }} {{ 1 is number }} {{ true is true }} {{ 'a' is eq 'a' }}
{# a comment #}x{#- another -#}  y{{ '}}' }}{{ "%}" }}{{ 'it\\'s' }}{{ "a\\tb\\\\n" }}
{% set block %}in {{ messages | length }}{% endset %}[{{ block }}]{% generation %}g{% endgeneration %}
{% set a, b = (1, 2) %}{{ a }}{{ b }}
{{ range(3) | join(',') }} {{ range(1, 3) | list | length }} {{ '%s' | string }} {{ '12' | int + 1 }} {{ [3, 1] | reverse | list | join }}
 tail {% if true %} x {% endif %} y
line one  {{- ' joined ' -}}   line two
\t{%- if true -%}  tight  {%- endif -%}\t
  {%+ if true %}kept{% endif +%}
{{ messages[0]['content'][0] if messages else '' }}{{ messages | length > 0 and messages[0].role or 'nobody' }}
{{ raise_exception('no ' + 'way') }}
{% macro say(who, what='hi', end='!') %}{{ who }}: {{ what }}{{ end }}{% endmacro %}{{ say('a') }} {{ say('b', end='?', what='x') }} {{ say(who='c') | upper }}
{% set g = 1 %}{% macro m(n) %}{{ g }}{% if n > 0 %}<{{ m(n - 1) }}>{% endif %}{% endmacro %}{% for i in [1] %}{% set g = 2 %}{{ m(2) }}{% endfor %}
{% macro row(m) %}{% for k in m %}{{ k }};{% endfor %}{% endmacro %}{% for m in messages %}{{ row(m) }}{{ loop.index }}{% endfor %}
{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }} {{ messages | rejectattr('role', 'equalto', 'user') | list | length }}
{{ [1, 2, 3, 4] | select('odd') | join(',') }} {{ [1, 2, 3] | reject('equalto', 2) | join(',') }} {{ ['a', 'b'] | map('upper') | join }} {{ none | select | list | length }} {{ [0, 1, ''] | select | list | length }} {{ messages | selectattr('nothing', 'defined') | list | length }}
{{ range(1, 10, 3) | join(',') }} {{ range(5, 0, -2) | join(',') }} {{ range(0, 5, -1) | list | length }} {{ range(4, 4) | list | length }}
{{ nothing | default(default_value='x') }} {{ none | default('y', boolean=true) }} {{ [1] | tojson(indent=none) }}
{{ '\u00e9\u00e8x'[1] }} {{ '\u00e9\u00e8x' | length }} {{ '\u00e9\u00e8x'[:2] }}
{{ ('a' if true else 'b') if false else ('c' if false else 'd') }} {{ 'a' if false else 'b' if false else 'c' }}
{{ 3 > 2 > 1 }} {{ 3 > 2 > 2 }} {{ 1 < 2 < 3 == 3 }} {{ 'a' in 'ab' in ['ab'] }} {{ 1 == 1 in [1] }}
{{ -5 | string }} {{ -1 is odd }} {{ - -2 }} {{ +3 }} {{ true + 1 }} {{ -true }} {{ [1, 2][true] }} {{ 'abc'[:true] }}
{{ {'a': 1} == {'a': 1} }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ {'a': 1} == {'a': 2} }} {{ nothing == nobody }} {{ {'a': 1} in [{'a': 1}] }}
{{ "don't a1b x-y (z) q_r" | title }} {{ "don't a1b x-y".title() }} {{ '-5' | int }} {{ ' 7 ' | int }} {{ '+1_000' | int }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ none | int }}
{{ [1, 2] | join(0) }} {{ 'abc' | join('-') }} {{ {'a': 1, 'b': 2} | join(',') }} [{{ nothing | join }}] {{ 'abc' | list | length }} {{ {'a': 1} | first }} {{ {'a': 1, 'b': 2} | last }} [{{ nothing | first }}]
{{ 'aaa' | replace('a', 'b', 2) }} {{ 'aaa'.replace('a', 'b', 1) }} {{ 5 | replace('5', 6) }} {{ none | upper }} {{ 'a' | default(boolean=true, default_value='b') }} {{ '' | default(boolean=true, default_value='b') }}
{{ {true: 1, none: 2, 3: 4} | tojson }} [{{ none.x }}{{ none[0] }}] {{ nothing is iterable }} {{ nothing is sequence }} {{ nothing is callable }} {{ true is odd }} {{ 'a' is in ['a'] }} {{ 1 is eq loop_index }}
{% for c in 'ab' %}{{ c }}{{ loop.depth }}{{ loop.depth0 }},{% endfor %}{{ 'a\\fb\\d' }}|{{ 'x' is ne messages[0].role }}
{{ {'a': {'b': 1}}['a']['b'] }} {{ {'a': {}} | tojson }} {{ [{}] | tojson }}{% set l = 1 %}{% for m in [] %}{% else %}{% set l = 2 %}{{ l }}{% endfor %}{{ l }}{% set s %}{% set l = 3 %}{{ l }}{% endset %}{{ s }}{{ l }} {{ {'a': 1} | map('upper') | join }} {{ 'ab' | select | join('-') }}
{{ 1 if true if false else 2 }} {{ 1 if false else 2 if true if true else 3 }} {{ 'a,b,c'.split(',', true) | tojson }}
{% for m in messages %}a{% continue %}{% else %}none completed{% endfor %} {{ '\U0001f680cafe x\u00e9x'.title() }}
"""


def render(template, chat, prompt):
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def refuse(message):
        raise RuntimeError(message)

    env.globals["raise_exception"] = refuse
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    template = template.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    messages = [{"role": r, "content": c} for r, c in CHATS[chat]]
    try:
        return env.from_string(template).render(messages=messages, tools=None, documents=None, bos_token="<s>",
                                                eos_token="</s>", add_generation_prompt=prompt)
    except RuntimeError as e:
        return "!" + str(e)


def case(name, template, chat, prompt):
    text = render(template, chat, prompt)
    sys.stdout.write("==== %s %s %d\n%s\n----\n%s\n====\n" % (name, chat, prompt, template, text))


def main():
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for name, template in CARDS.items():
        for chat in CHATS:
            for prompt in (0, 1):
                case(name, template, chat, prompt)
    parts = [p for p in PARTS.split("\n") if p]
    for i, part in enumerate(parts):
        for chat in ("one", "system"):
            case("part%d" % i, part, chat, 0)
    for i, part in enumerate(("   {% if true %}\n   indented\n   {% endif %}\n tail {% if true %} x {% endif %}\n y\n",
                              "a\n\n  {%- for m in messages %}\n  {{ m.role }}\n  {% endfor %}\nb\n\n",
                              "{#- c #}\n  {# d #}\nx\n{{ 1 }}\n{{- 2 -}}\n\n3\n",
                              "a \u00a0\u3000{%- if true -%} \u2003b{% endif %}\n\u00a0{% if true %}c{% endif %}{# d +#}\ne{#-#} \nf",)):
        for chat in ("one", "talk"):
            case("lines%d" % i, part, chat, 0)


main()
