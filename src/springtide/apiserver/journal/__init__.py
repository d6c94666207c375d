"""The journal that persists an embedded cluster across restarts."""

from springtide.apiserver.journal.file_journal import FileJournal, JournalSync, open_journal, restore_storage
from springtide.apiserver.journal.files import JournalError

__all__ = ["FileJournal", "JournalError", "JournalSync", "open_journal", "restore_storage"]
