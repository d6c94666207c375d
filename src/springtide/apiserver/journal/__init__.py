"""What keeps an embedded cluster beyond the end of its process: a journal of every write, in a folder of its own."""

from springtide.apiserver.journal.file_journal import FileJournal, JournalSync, open_journal, restore_storage
from springtide.apiserver.journal.files import JournalError

__all__ = ["FileJournal", "JournalError", "JournalSync", "open_journal", "restore_storage"]
