"""What keeps an embedded cluster beyond the end of its process: a journal of every write, in a folder of its own."""

from springtide.simulator.durable.errors import JournalError
from springtide.simulator.durable.journal import FileJournal, Sync
from springtide.simulator.durable.opening import open_journal, restored

__all__ = ["FileJournal", "JournalError", "Sync", "open_journal", "restored"]
