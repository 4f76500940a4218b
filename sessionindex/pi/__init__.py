"""sessionindex inside Pi: an extension, a skill, and what puts them where Pi looks.

`extension.js` and `SKILL.md` are what Pi reads; `extension` makes their text, `installer` puts them
in place and takes them away, `surroundings` sees what else decides whether they work.
"""
