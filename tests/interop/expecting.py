"""How a check says that it has failed."""


class Failed(Exception):
    pass


def expect(fact, text):
    if not fact:
        raise Failed(text)
