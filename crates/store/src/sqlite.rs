//! The embedded engine: SQLite with a write-ahead log, synchronous to the disk. No other file names it.

mod engagement;
mod feed;
mod inclusion;

use crate::change::{Change, Hash, Operation, Sequence};
use crate::check::{Flaw, Soundness};
use crate::feed::Feed;
use crate::head::Head;
use crate::record::{Kind, Listed, Record, State};
use crate::store::{Batch, CommitError, Committed, Mark, OpenError, Outcome, Put, Withdrawal, change};
use crate::tables::{APPLICATION, BROUGHT, ENGAGEMENTS, FEED, FORMAT, SCHEMA, TOLD};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the engine can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    #[error("the head of the log cannot be written: {0}")]
    Unwritten(std::io::Error),
    #[error("what was written is not known to be on disk: {0}")]
    Unsynced(std::io::Error),
    #[error("a value in the tables has no meaning: {0}")]
    Meaningless(&'static str),
    #[error("the record of change {0} is not what was written; `rialto store check` tells what else is not")]
    OtherRecord(u64),
}

impl EngineError {
    /// What a failure to write says about the disk. After a failed sync a later one may claim what is not true.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Unsynced(_) | Self::Meaningless(_) | Self::OtherRecord(_) => Verdict::Broken,
            Self::Unwritten(_) => Verdict::Unclear,
            Self::Database(rusqlite::Error::SqliteFailure(failure, _)) => {
                let syncing = [rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC];
                match failure.code {
                    _ if syncing.contains(&failure.extended_code) => Verdict::Broken,
                    ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Verdict::Broken,
                    ErrorCode::DiskFull => Verdict::Full,
                    ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly => Verdict::Unclear,
                    _ => Verdict::Passing,
                }
            }
            Self::Database(_) => Verdict::Passing,
        }
    }
}

/// What a failure to write says about the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing can be trusted until the store is opened again.
    Broken,
    /// There is no room.
    Full,
    /// The engine has one word for a disk that is read-only and one that fails.
    Unclear,
    /// It is not about the disk.
    Passing,
}

/// Why a copy was not made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder cannot be used.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is a store in it.
    #[error("{0} holds a store already; name an empty folder")]
    NotEmpty(PathBuf),
    /// The copy failed.
    #[error("the copy failed: {0}")]
    Copy(String),
}

/// Pages of 8 KiB: half of the records fit one.
const PAGE_BYTES: u32 = 8192;
/// KiB that a reader keeps of the file: the upper pages of a table of millions, so that a look-up reads one page.
const READER_CACHE_KIB: i64 = 16_384;
/// Pages after which the write-ahead log is folded in.
const CHECKPOINT_PAGES: u32 = 8000;

/// The one connection that writes.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let engine = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy(path.to_owned()),
            Some(ErrorCode::NotADatabase) => OpenError::NotAStore(path.to_owned()),
            Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged(Flaw::Engine(error.to_string())),
            _ => OpenError::Engine(error.to_string()),
        };
        let connection = Connection::open(path).map_err(engine)?;
        let database = Self { connection, path: path.to_owned() };
        database.prepare().map_err(engine)?;
        database.check_format(path).map_err(|error| error.unwrap_or_else(engine))?;
        Ok(database)
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(Duration::from_millis(200))?;
        self.connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        self.connection.pragma_update(None, "cache_size", -65_536)
    }

    /// Makes the tables of a new file; refuses a foreign one and one of a later format.
    fn check_format(&self, path: &Path) -> Result<(), FormatError> {
        let number = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let (application, format) = (number("application_id")?, number("user_version")?);
        let tables: u32 = self.connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application == 0 && tables == 0 {
            self.connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {SCHEMA} {FEED} {BROUGHT} {ENGAGEMENTS} {TOLD} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT;"
            ))?;
            return Ok(());
        }
        if application != APPLICATION {
            return Err(FormatError::Open(OpenError::NotAStore(path.to_owned())));
        }
        if format > FORMAT {
            return Err(FormatError::Open(OpenError::LaterFormat { found: format, known: FORMAT }));
        }
        if format < FORMAT {
            let feed = if format < 2 { FEED } else { "" };
            let brought = if format < 3 { BROUGHT } else { "" };
            let engagements = if format < 5 { ENGAGEMENTS } else { "" };
            let told = if format < 7 { TOLD } else { "" };
            let grown = format!(
                "BEGIN IMMEDIATE; {feed} {brought} {engagements} {told} PRAGMA user_version = {FORMAT}; COMMIT;"
            );
            self.connection.execute_batch(&grown)?;
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> Result<Reader, OpenError> {
        Reader::open(&self.path).map_err(|error| OpenError::Engine(error.to_string()))
    }

    /// Writes a group of batches in one transaction, each of them whole or not at all.
    pub(crate) fn write(&mut self, mut head: Head, batches: &[Work]) -> Result<(Head, Answers), EngineError> {
        let mut transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut answers = Vec::with_capacity(batches.len());
        // A batch by itself needs no savepoint: refused, it takes the whole transaction back.
        if let [(batch, feed)] = batches {
            return match apply(&transaction, head, batch, feed.as_deref())? {
                Ok((later, outcomes)) => {
                    transaction.commit()?;
                    Ok((later, vec![Ok(outcomes)]))
                }
                Err(refused) => Ok((head, vec![Err(refused)])),
            };
        }
        for (batch, feed) in batches {
            let part = transaction.savepoint()?;
            match apply(&part, head, batch, feed.as_deref())? {
                Ok((later, outcomes)) => {
                    part.commit()?;
                    head = later;
                    answers.push(Ok(outcomes));
                }
                // A savepoint that is dropped is rolled back.
                Err(refused) => answers.push(Err(refused)),
            }
        }
        transaction.commit()?;
        Ok((head, answers))
    }
}

enum FormatError {
    Open(OpenError),
    Engine(rusqlite::Error),
}

impl FormatError {
    fn unwrap_or_else(self, engine: impl Fn(rusqlite::Error) -> OpenError) -> OpenError {
        match self {
            Self::Open(error) => error,
            Self::Engine(error) => engine(error),
        }
    }
}

impl From<rusqlite::Error> for FormatError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

/// What became of each batch of a group.
pub(crate) type Answers = Vec<Result<Committed, CommitError>>;

/// A batch, and what delivery writes with it.
pub(crate) type Work = (Batch, Option<Box<Feed>>);

type Applied = Result<(Head, Committed), CommitError>;

fn apply(connection: &Connection, head: Head, batch: &Batch, feed: Option<&Feed>) -> Result<Applied, EngineError> {
    if let Some(mark) = &batch.mark {
        forget_marks(connection, batch.at)?;
        match read_mark(connection, &mark.issuer, &mark.name)? {
            Some(before) if before.digest == mark.digest => return Ok(Ok((head, before.committed))),
            Some(_) => return Ok(Err(CommitError::NameTaken { name: mark.name.clone() })),
            None => {}
        }
    }
    let (mut head, mut outcomes) = (head, Vec::new());
    for put in &batch.puts {
        match apply_put(connection, &mut head, put, batch.at)? {
            Ok(outcome) => outcomes.push(outcome),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    for withdrawal in &batch.withdrawals {
        match apply_withdrawal(connection, &mut head, withdrawal, batch.at)? {
            Ok(outcome) => outcomes.push(outcome),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    let committed = Committed { outcomes, at: batch.at };
    if let Some(mark) = &batch.mark {
        write_mark(connection, mark, &committed)?;
    }
    if let Some(feed) = feed {
        if let Err(refused) = engagement::apply(connection, &feed.journal)? {
            return Ok(Err(refused));
        }
        feed::apply(connection, feed)?;
        head.written = feed::count(connection)?;
    }
    Ok(Ok((head, committed)))
}

fn apply_put(
    connection: &Connection,
    head: &mut Head,
    put: &Put,
    at: i64,
) -> Result<Result<Outcome, CommitError>, EngineError> {
    let before = latest(connection, &put.id)?;
    if let Some(before) = &before {
        if before.publisher != put.publisher {
            let (id, publisher) = (put.id.clone(), before.publisher.clone());
            return Ok(Err(CommitError::NotThePublisher { id, publisher }));
        }
        if before.kind != put.kind {
            return Ok(Err(CommitError::OtherKind { id: put.id.clone(), kind: before.kind.name() }));
        }
        if before.state == State::Active && before.body == put.body {
            return Ok(Ok(Outcome::Unchanged { revision: before.revision }));
        }
    }
    let record = Record {
        number: head.sequence + 1,
        id: put.id.clone(),
        kind: put.kind,
        revision: before.as_ref().map_or(1, |before| before.revision + 1),
        publisher: put.publisher.clone(),
        received_at: at,
        state: State::Active,
        body: put.body.clone(),
    };
    let spoke = before.filter(|before| before.state == State::Active);
    if let Some(before) = &spoke {
        set_state(connection, before.number, State::Superseded)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO record (number, id, kind, revision, publisher, received_at, state, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            record.number as i64,
            record.id,
            record.kind.number(),
            record.revision as i64,
            record.publisher,
            record.received_at,
            record.state.number(),
            record.body,
        ])?;
    let replaces = spoke.map(|before| before.number);
    log(connection, head, &change(*head, Operation::Put, &record, replaces, at))?;
    Ok(Ok(Outcome::Changed { sequence: head.sequence, revision: record.revision, replaces }))
}

fn apply_withdrawal(
    connection: &Connection,
    head: &mut Head,
    withdrawal: &Withdrawal,
    at: i64,
) -> Result<Result<Outcome, CommitError>, EngineError> {
    let Some(record) = latest(connection, &withdrawal.id)? else {
        return Ok(Err(CommitError::NoSuchRecord { id: withdrawal.id.clone() }));
    };
    if record.publisher != withdrawal.publisher {
        return Ok(Err(CommitError::NotThePublisher { id: record.id, publisher: record.publisher }));
    }
    if record.state != State::Active {
        return Ok(Ok(Outcome::Unchanged { revision: record.revision }));
    }
    set_state(connection, record.number, State::Withdrawn)?;
    log(connection, head, &change(*head, Operation::Withdraw, &record, Some(record.number), at))?;
    let replaces = Some(record.number);
    Ok(Ok(Outcome::Changed { sequence: head.sequence, revision: record.revision, replaces }))
}

fn forget_marks(connection: &Connection, at: i64) -> Result<(), EngineError> {
    connection.prepare_cached("DELETE FROM mark WHERE expires_at < ?1")?.execute([at])?;
    Ok(())
}

fn write_mark(connection: &Connection, mark: &Mark, committed: &Committed) -> Result<(), EngineError> {
    connection
        .prepare_cached("INSERT INTO mark (issuer, name, digest, expires_at, answer) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![mark.issuer, mark.name, mark.digest.0, mark.expires_at, mark.kept(committed)])?;
    Ok(())
}

fn set_state(connection: &Connection, number: u64, state: State) -> Result<(), EngineError> {
    let mut statement = connection.prepare_cached("UPDATE record SET state = ?2 WHERE number = ?1")?;
    statement.execute(params![number as i64, state.number()])?;
    Ok(())
}

fn log(connection: &Connection, head: &mut Head, change: &Change) -> Result<(), EngineError> {
    connection
        .prepare_cached(
            "INSERT INTO change (sequence, operation, id, kind, revision, publisher, at, replaces, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            change.sequence as i64,
            change.operation.number(),
            change.id,
            change.kind.number(),
            change.revision as i64,
            change.publisher,
            change.at,
            change.replaces.map(|number| number as i64),
            change.body.0,
            change.hash.0,
        ])?;
    *head = Head { sequence: change.sequence, hash: change.hash, ..*head };
    Ok(())
}

const RECORD: &str = "number, id, kind, revision, publisher, received_at, state, body";
/// The hash that the log has of a record's body; none where the log speaks of another record.
const LOGGED: &str = "(SELECT change.body FROM change WHERE change.sequence = record.number AND change.operation = 0
    AND change.id = record.id AND change.kind = record.kind AND change.revision = record.revision
    AND change.publisher = record.publisher AND change.at = record.received_at)";
const MARK: &str = "issuer, name, digest, expires_at, answer";
const CHANGE: &str = "sequence, operation, id, kind, revision, publisher, at, replaces, body, hash";

fn latest(connection: &Connection, id: &str) -> Result<Option<Record>, EngineError> {
    // Without the `+` SQLite plans by the value that is bound, and plans anew for each of them.
    let query = format!("SELECT {RECORD} FROM record WHERE id = +?1 ORDER BY revision DESC LIMIT 1");
    let found = connection.prepare_cached(&query)?.query_row([id], read_record).optional()?;
    found.transpose()
}

/// A message that was dealt with, and what became of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) digest: Hash,
    pub(crate) committed: Committed,
}

fn read_mark(connection: &Connection, issuer: &str, name: &str) -> Result<Option<Done>, EngineError> {
    let query = format!("SELECT {MARK} FROM mark WHERE issuer = +?1 AND name = +?2");
    let found = connection.prepare_cached(&query)?.query_row([issuer, name], read_done).optional()?;
    found.transpose()
}

fn read_done(row: &Row<'_>) -> rusqlite::Result<Result<Done, EngineError>> {
    let (digest, answer) = (row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(4)?);
    let Some(digest) = Hash::read(&digest) else { return Ok(Err(EngineError::Meaningless("a mark's digest"))) };
    let mark = Mark { issuer: row.get(0)?, name: row.get(1)?, digest, expires_at: row.get(3)? };
    let committed = mark.committed(&answer).ok_or(EngineError::Meaningless("a mark's answer"));
    Ok(committed.map(|committed| Done { digest, committed }))
}

fn read_record(row: &Row<'_>) -> rusqlite::Result<Result<Record, EngineError>> {
    let (kind, state) = (Kind::from_number(row.get(2)?), State::from_number(row.get(6)?));
    let (Some(kind), Some(state)) = (kind, state) else {
        return Ok(Err(EngineError::Meaningless("a record's kind or state")));
    };
    Ok(Ok(Record {
        number: row.get::<_, i64>(0)? as u64,
        id: row.get(1)?,
        kind,
        revision: row.get::<_, i64>(3)? as u64,
        publisher: row.get(4)?,
        received_at: row.get(5)?,
        state,
        body: row.get(7)?,
    }))
}

/// A record with what the log has of it: whatever a page holds now, only what was written is given out.
fn read_as_logged(row: &Row<'_>) -> rusqlite::Result<Result<Record, EngineError>> {
    let (record, logged) = (read_record(row)?, row.get(8)?);
    Ok(record.and_then(|record| as_logged(record.number, &record.body, logged).map(|()| record)))
}

fn as_logged(number: u64, body: &[u8], logged: Option<Vec<u8>>) -> Result<(), EngineError> {
    let logged = logged.as_deref().and_then(Hash::read);
    if logged == Some(Hash::of(body)) { Ok(()) } else { Err(EngineError::OtherRecord(number)) }
}

fn read_change(row: &Row<'_>) -> rusqlite::Result<Result<Change, EngineError>> {
    let (operation, kind) = (Operation::from_number(row.get(1)?), Kind::from_number(row.get(3)?));
    let (body, hash) = (row.get::<_, Vec<u8>>(8)?, row.get::<_, Vec<u8>>(9)?);
    let (Some(operation), Some(kind), Some(body), Some(hash)) = (operation, kind, Hash::read(&body), Hash::read(&hash))
    else {
        return Ok(Err(EngineError::Meaningless("a change's operation, kind or hash")));
    };
    Ok(Ok(Change {
        sequence: row.get::<_, i64>(0)? as u64,
        operation,
        id: row.get(2)?,
        kind,
        revision: row.get::<_, i64>(4)? as u64,
        publisher: row.get(5)?,
        at: row.get(6)?,
        replaces: row.get::<_, Option<i64>>(7)?.map(|number| number as u64),
        body,
        hash,
    }))
}

/// A connection that reads.
#[derive(Debug)]
pub(crate) struct Reader {
    connection: Connection,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        Ok(Self { connection })
    }

    pub(crate) fn latest(&self, id: &str) -> Result<Option<Record>, EngineError> {
        // The `+` is for what `latest` says.
        let query = format!("SELECT {RECORD}, {LOGGED} FROM record WHERE id = +?1 ORDER BY revision DESC LIMIT 1");
        let found = self.connection.prepare_cached(&query)?.query_row([id], read_as_logged).optional()?;
        found.transpose()
    }

    pub(crate) fn listed(&self, id: &str) -> Result<Option<Listed>, EngineError> {
        let query = "SELECT number, kind, publisher, state FROM record WHERE id = +?1 ORDER BY revision DESC LIMIT 1";
        let read = |row: &Row<'_>| {
            let number = row.get::<_, i64>(0)? as u64;
            Ok((number, Kind::from_number(row.get(1)?), row.get(2)?, State::from_number(row.get(3)?)))
        };
        match self.connection.prepare_cached(query)?.query_row([id], read).optional()? {
            Some((number, Some(kind), publisher, Some(State::Active))) => Ok(Some(Listed { number, kind, publisher })),
            None | Some((_, Some(_), _, Some(State::Withdrawn | State::Superseded))) => Ok(None),
            Some(_) => Err(EngineError::Meaningless("a record's kind or state")),
        }
    }

    pub(crate) fn mark(&self, issuer: &str, name: &str) -> Result<Option<Done>, EngineError> {
        read_mark(&self.connection, issuer, name)
    }

    pub(crate) fn by_number(&self, number: u64) -> Result<Option<Record>, EngineError> {
        let query = format!("SELECT {RECORD}, {LOGGED} FROM record WHERE number = ?1");
        let found = self.connection.prepare_cached(&query)?.query_row([number as i64], read_as_logged).optional()?;
        found.transpose()
    }

    /// The hash of the body that is there, whatever the log says of it.
    fn body_at(&self, number: u64) -> Result<Option<Hash>, EngineError> {
        let mut statement = self.connection.prepare_cached("SELECT body FROM record WHERE number = ?1")?;
        let body = statement.query_row([number as i64], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        Ok(body.map(|body| Hash::of(&body)))
    }

    /// The bodies of records, all from one look at the file: each look takes and gives back a lock.
    pub(crate) fn bodies(&self, numbers: &[u64]) -> Result<Vec<Option<Vec<u8>>>, EngineError> {
        let look = self.connection.unchecked_transaction()?;
        let query = format!("SELECT body, {LOGGED} FROM record WHERE number = ?1");
        let mut statement = self.connection.prepare_cached(&query)?;
        let mut body = |number: &u64| {
            let found = statement.query_row([*number as i64], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            found.map(|(body, logged): (Vec<u8>, _)| as_logged(*number, &body, logged).map(|()| body)).transpose()
        };
        let bodies = numbers.iter().map(&mut body).collect::<Result<_, EngineError>>()?;
        drop(statement);
        look.commit()?;
        Ok(bodies)
    }

    pub(crate) fn active_after(&self, number: u64, limit: usize) -> Result<Vec<Record>, EngineError> {
        let query =
            format!("SELECT {RECORD}, {LOGGED} FROM record WHERE number > ?1 AND state = 0 ORDER BY number LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map(params![number as i64, limit as i64], read_as_logged)?.map(|row| row?).collect()
    }

    pub(crate) fn changes_after(&self, sequence: Sequence, limit: usize) -> Result<Vec<Change>, EngineError> {
        let query = format!("SELECT {CHANGE} FROM change WHERE sequence > ?1 ORDER BY sequence LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map(params![sequence as i64, limit as i64], read_change)?.map(|row| row?).collect()
    }

    pub(crate) fn last_sequence(&self) -> Result<Sequence, EngineError> {
        let query = "SELECT coalesce(max(sequence), 0) FROM change";
        Ok(self.connection.query_row(query, [], |row| row.get::<_, i64>(0))? as u64)
    }

    pub(crate) fn hash_at(&self, sequence: Sequence) -> Result<Option<Hash>, EngineError> {
        if sequence == 0 {
            return Ok(Some(Hash::GENESIS));
        }
        let query = "SELECT hash FROM change WHERE sequence = ?1";
        let found = self.connection.query_row(query, [sequence as i64], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        Ok(found.and_then(|hash| Hash::read(&hash)))
    }

    /// Follows the chain from after `sequence` to its end, with the records that it brought.
    pub(crate) fn verify(&self, sequence: Sequence, bodies: bool) -> Result<Result<Head, Flaw>, EngineError> {
        let Some(hash) = self.hash_at(sequence)? else { return Ok(Err(Flaw::Gap { sequence })) };
        let mut head = Head { sequence, hash, written: self.written()? };
        loop {
            let changes = self.changes_after(head.sequence, 1000)?;
            if changes.is_empty() {
                return Ok(Ok(head));
            }
            for change in changes {
                if let Some(flaw) = flaw(head, &change) {
                    return Ok(Err(flaw));
                }
                if bodies && change.operation == Operation::Put && self.body_at(change.sequence)? != Some(change.body) {
                    return Ok(Err(Flaw::OtherBody { sequence: change.sequence, id: change.id }));
                }
                head = Head { sequence: change.sequence, hash: change.hash, ..head };
            }
        }
    }

    /// Verifies the engine's pages, the whole chain, every record, and that states follow from the log; and where asked
    /// every journal, of which there can be far more.
    pub(crate) fn check(&self, journals: bool) -> Result<Soundness, EngineError> {
        let pages: String = self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let count = |query: &str| self.connection.query_row(query, [], |row| row.get::<_, i64>(0).map(|n| n as u64));
        let mut flaws = Vec::new();
        if pages != "ok" {
            flaws.push(Flaw::Engine(pages));
        }
        flaws.extend(self.verify(0, true)?.err());
        // One list of what was replaced: looking through the log for each record would take the square of its length.
        let strays = "SELECT count(*) FROM record WHERE (state = 0) <>
            (number NOT IN (SELECT replaces FROM change WHERE replaces IS NOT NULL))";
        match count(strays)? {
            0 => {}
            records => flaws.push(Flaw::States { records }),
        }
        let others = "SELECT count(*) FROM record LEFT JOIN change ON sequence = number WHERE sequence IS NULL
            OR change.id <> record.id OR change.kind <> record.kind OR change.revision <> record.revision
            OR change.publisher <> record.publisher OR change.at <> record.received_at OR operation <> 0
            OR record.state NOT IN (0, 1, 2)";
        match count(others)? {
            0 => {}
            records => flaws.push(Flaw::Rows { records }),
        }
        match self.meaningless_marks()? {
            0 => {}
            marks => flaws.push(Flaw::Marks { marks }),
        }
        match if journals { self.broken_journals()? } else { 0 } {
            0 => {}
            subscriptions => flaws.push(Flaw::Journals { subscriptions }),
        }
        Ok(Soundness {
            changes: self.last_sequence()?,
            records: count("SELECT count(*) FROM record")?,
            active: count("SELECT count(*) FROM record WHERE state = 0")?,
            flaws,
        })
    }
}

impl Reader {
    fn meaningless_marks(&self) -> Result<u64, EngineError> {
        let mut statement = self.connection.prepare(&format!("SELECT {MARK} FROM mark"))?;
        let mut found = 0;
        for done in statement.query_map([], read_done)? {
            found += u64::from(done?.is_err());
        }
        Ok(found)
    }
}

/// What is wrong with a change after the one before it.
fn flaw(head: Head, change: &Change) -> Option<Flaw> {
    if change.sequence != head.sequence + 1 {
        return Some(Flaw::Gap { sequence: head.sequence + 1 });
    }
    (change.hash != change.chained(head.hash)).then_some(Flaw::OtherHistory { sequence: change.sequence })
}

/// Copies a database while it is in use.
pub(crate) fn backup(from: &Path, to: &Path) -> Result<(), BackupError> {
    let copy = || -> rusqlite::Result<()> {
        let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        source.busy_timeout(Duration::from_secs(60))?;
        source.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
        let copy = Connection::open(to)?;
        engagement::clear(&copy)?;
        feed::clear(&copy)
    };
    copy().map_err(|error| BackupError::Copy(error.to_string()))
}
