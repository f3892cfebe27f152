"""`stopwise serve --example`: three real stages that ship with Stopwise, fed with labelled texts.

`texts` reads what ships, `detectors` are the stages (languages by letters, pairs, and groups of
letters), `upstream` serves them as an OpenAI-compatible server would, `feeder` sends every
text once and keeps the truth to itself until then, `running` puts it all together.
"""
