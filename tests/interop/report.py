"""What was found, as a table."""

# In the order in which they are shown.
COLUMNS = ("exclusion", "counts", "bound", "wake-up", "expiry", "foreign release", "release",
           "renewal", "re-entry", "tokens", "order", "gone waiter", "readers", "downgrade",
           "kill -9", "five nodes", "together")


class Report:
    def __init__(self):
        self.cells = {}  # (client, column) → "ok" or "FAILED"
        self.missing = {}  # client → why
        self.failures = []
        self.order = []

    def note(self, client, column, what):
        if client not in self.order:
            self.order.append(client)
        self.cells[client, column] = what

    def ok(self, client, column):
        self.note(client, column, "ok")

    def failed(self, client, column, why):
        self.note(client, column, "FAILED")
        self.failures.append(f"{client}: {column}: {why}")

    def not_run(self, client, why):
        if client not in self.order:
            self.order.append(client)
        self.missing[client] = why

    def verdict(self, allow_missing):
        if self.order:
            self.show()
        for one in self.failures:
            print("FAILED " + one)
        for client, why in self.missing.items():
            print(f"not run: {client}: {why}")
        if self.cells or self.missing:
            self.count()
        return 1 if self.failures or self.missing and not allow_missing else 0

    def count(self):
        done = sum(1 for what in self.cells.values() if what == "ok")
        print(f"{done} ok, {len(self.failures)} failed, {len(self.missing)} clients not run")

    def show(self):
        columns = [one for one in COLUMNS if any(column == one for _, column in self.cells)]
        width = max(len(name) for name in self.order) + 2
        print()
        print(" " * width + "  ".join(columns))
        for client in self.order:
            row = client.ljust(width)
            for column in columns:
                text = self.cells.get((client, column), "·")
                if client in self.missing:
                    text = "not run"
                row += text.ljust(max(len(column), 7) + 2)[:max(len(column) + 2, len(text) + 1)]
            print(row.rstrip())
        print("each in both directions; ·: this client has no such thing")
        print()
