//! The whole schema on one page, and the version of the file.
//!
//! The statements are SQL that PostgreSQL reads, too, but for `BLOB` and `INTEGER PRIMARY KEY`.

/// The version of the file format; a file of a later one is refused.
pub(crate) const FORMAT: u32 = 1;

/// Marks a file as ours ("RIAL").
pub(crate) const APPLICATION: u32 = 0x5249_414c;

pub(crate) const SCHEMA: &str = "
CREATE TABLE record (
    number      INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL,
    kind        INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    publisher   TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    body        BLOB    NOT NULL
);
CREATE UNIQUE INDEX record_by_id ON record (id, revision);

CREATE TABLE change (
    sequence    INTEGER PRIMARY KEY,
    operation   INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    kind        INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    publisher   TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    replaces    INTEGER,
    body        BLOB    NOT NULL,
    hash        BLOB    NOT NULL
);

CREATE TABLE mark (
    issuer      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    digest      BLOB    NOT NULL,
    expires_at  INTEGER NOT NULL,
    answer      BLOB    NOT NULL,
    PRIMARY KEY (issuer, name)
) WITHOUT ROWID;
CREATE INDEX mark_by_expiry ON mark (expires_at);
";
