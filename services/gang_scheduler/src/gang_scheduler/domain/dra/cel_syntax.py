"""Reading the Common Expression Language as far as device selectors use it: from text to a tree.

A tree is a tuple whose first element names what it is; see the functions of the parser. There is no cost limit as in
Kubernetes; texts longer than Kubernetes permits are refused instead.
"""

import re
from ast import literal_eval
from typing import Any

LONGEST = 10 * 1024

Node = tuple[Any, ...]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>\d+\.\d+|0x[0-9a-fA-F]+u?|\d+u?)
    | (?P<raw>[rR](?:"[^"]*"|'[^']*'))
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<name>[A-Za-z_]\w*)
    | (?P<op>\|\||&&|==|!=|<=|>=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])
    )""",
    re.VERBOSE,
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("<", "<=", ">", ">=", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_WORDS = {"true": True, "false": False, "null": None}


class CelError(ValueError):
    """An expression that cannot be read, or not be evaluated for a device; the text says why."""


def parse(text: str) -> Node:
    """The tree of an expression; raises CelError."""
    if len(text) > LONGEST:
        raise CelError(f"the expression is longer than {LONGEST} characters")
    parser = _Parser(_tokens(text))
    try:
        tree = parser.expression()
    except RecursionError:
        raise CelError("the expression is nested too deeply") from None
    if parser.kind:
        raise CelError(f"unexpected {parser.text!r} in {text!r}")
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise CelError(f"unexpected {text[at:].strip()[:10]!r} in {text!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    return found


class _Parser:
    """Recursive descent; ``kind`` and ``text`` are the token that comes next, "" at the end."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    @property
    def text(self) -> str:
        return self._tokens[self._at][1] if self.kind else "the end"

    def expression(self) -> Node:
        """``a ? b : c``, or anything of a lower level."""
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        then = self.expression()
        self._expect(":")
        return "if", condition, then, self.expression()

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.kind in ("op", "name") and self.text in _LEVELS[level]:
            operator = self._next()
            left = ("binary", operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        if self.kind == "op" and self.text in ("!", "-"):
            return "unary", self._next(), self._unary()
        return self._member()

    def _member(self) -> Node:
        found = self._primary()
        while self.kind == "op" and self.text in (".", ".?", "[", "[?"):
            operator = self._next()
            if operator in ("[", "[?"):
                found = ("index", found, self.expression(), operator == "[?")
                self._expect("]")
            elif self._is_call():
                found = ("call", found, self._next(), self._arguments())
            else:
                found = ("index", found, ("value", self._name()), operator == ".?")
        return found

    def _primary(self) -> Node:
        kind, text = self.kind, self.text
        if kind == "name":
            if self._is_call():
                return "call", None, self._next(), self._arguments()
            self._next()
            return ("value", _WORDS[text]) if text in _WORDS else ("name", text)
        if kind in ("number", "string", "raw"):
            self._next()
            return "value", _literal(kind, text)
        if self._accept("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._accept("["):
            return "list", self._until("]")
        raise CelError(f"unexpected {text!r}")

    def _is_call(self) -> bool:
        following = self._tokens[self._at + 1][1] if self._at + 1 < len(self._tokens) else ""
        return self.kind == "name" and following == "("

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        return self._until(")")

    def _until(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(end):
            found.append(self.expression())
            if not self._accept(","):
                self._expect(end)
                break
        return tuple(found)

    def _name(self) -> str:
        if self.kind != "name":
            raise CelError(f"a name is missing before {self.text!r}")
        return self._next()

    def _next(self) -> str:
        text = self.text
        self._at += 1
        return text

    def _accept(self, operator: str) -> bool:
        if self.kind == "op" and self.text == operator:
            self._at += 1
            return True
        return False

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise CelError(f"{operator!r} is missing before {self.text!r}")


def _literal(kind: str, text: str) -> Any:
    if kind == "raw":
        return text[2:-1]
    if kind == "string":
        try:
            return literal_eval(text)
        except (SyntaxError, ValueError):
            raise CelError(f"{text} is no string") from None
    return float(text) if "." in text else int(text.rstrip("u"), 0)
