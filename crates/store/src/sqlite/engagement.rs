//! OAS Engagement: the tables of engagements.

use super::{EngineError, Reader};
use crate::engagement::{Engaged, Journal, Noted, Reached, Spec};
use crate::store::CommitError;
use rusqlite::{Connection, OptionalExtension, Row, params};

const ENGAGEMENT: &str = "id, agent, document, caller, parent, place, begun_at, reached, reviewer, due, checksum";

/// Writes a journal; refuses a step that is not the next one, since somebody else has written it.
pub(super) fn apply(connection: &Connection, journal: &Journal) -> Result<Result<(), CommitError>, EngineError> {
    for spec in &journal.specs {
        connection
            .prepare_cached("INSERT OR IGNORE INTO spec (digest, agent, at, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![spec.digest, spec.agent, spec.at, spec.body])?;
    }
    for engaged in &journal.engagements {
        let (parent, place) = engaged.parent.clone().unzip();
        connection
            .prepare_cached(&format!(
                "INSERT INTO engagement ({ENGAGEMENT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                ON CONFLICT (id) DO UPDATE SET reached = ?8, reviewer = ?9, due = ?10, checksum = ?11"
            ))?
            .execute(params![
                engaged.id,
                engaged.agent,
                engaged.document,
                engaged.caller,
                parent,
                place,
                engaged.begun_at,
                engaged.reached.number(),
                engaged.reviewer,
                engaged.due,
                engaged.checksum(),
            ])?;
    }
    // Steps of one engagement stand together more often than not.
    let mut known: Option<(&str, i64, u64)> = None;
    for step in &journal.steps {
        let (number, next) = match known {
            Some((id, number, next)) if id == step.engagement => (number, next),
            _ => match position(connection, &step.engagement)? {
                Some(position) => position,
                None => return Ok(Err(taken(step))),
            },
        };
        if next != step.position {
            return Ok(Err(taken(step)));
        }
        connection
            .prepare_cached("INSERT INTO step (engagement, position, at, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![number, step.position as i64, step.at, step.body, step.checksum()])?;
        known = Some((&step.engagement, number, next + 1));
    }
    Ok(Ok(()))
}

fn taken(step: &Noted) -> CommitError {
    CommitError::NameTaken { name: format!("{}/{}", step.engagement, step.position) }
}

/// The number of an engagement, and where its next step goes.
fn position(connection: &Connection, id: &str) -> Result<Option<(i64, u64)>, EngineError> {
    let query = "SELECT number, coalesce((SELECT max(position) + 1 FROM step WHERE engagement = number), 0)
        FROM engagement WHERE id = ?1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
    Ok(connection.prepare_cached(query)?.query_row([id], read).optional()?)
}

/// Takes everything but documents out of a copy: an engagement that went on after the copy was made must not do again,
/// out of the copy, what it has done since.
pub(super) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE; DELETE FROM step; DELETE FROM engagement; COMMIT;")
}

impl Reader {
    /// A document by its digest.
    pub(crate) fn spec(&self, digest: &str) -> Result<Option<Spec>, EngineError> {
        let query = "SELECT digest, agent, at, body FROM spec WHERE digest = ?1";
        let read =
            |row: &Row<'_>| Ok(Spec { digest: row.get(0)?, agent: row.get(1)?, at: row.get(2)?, body: row.get(3)? });
        let found = self.connection.prepare_cached(query)?.query_row([digest], read).optional()?;
        match found {
            Some(spec) if !spec.is_sound() => Err(EngineError::Meaningless("a document")),
            found => Ok(found),
        }
    }

    /// An engagement by its name.
    pub(crate) fn engagement(&self, id: &str) -> Result<Option<Engaged>, EngineError> {
        let query = format!("SELECT {ENGAGEMENT} FROM engagement WHERE id = ?1");
        self.connection.prepare_cached(&query)?.query_row([id], read_engaged).optional()?.transpose()
    }

    /// Engagements that have come so far, the first one first.
    pub(crate) fn engagements_at(&self, reached: Reached) -> Result<Vec<Engaged>, EngineError> {
        // The number stands in the text, so that the engine sees which index covers it.
        let number = reached.number();
        let query = format!("SELECT {ENGAGEMENT} FROM engagement WHERE reached = {number} ORDER BY number");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map([], read_engaged)?.map(|row| row?).collect()
    }

    /// Engagements that others serve or served and that wait, and neither for a reviewer nor until some time.
    pub(crate) fn engagements_served(&self) -> Result<Vec<Engaged>, EngineError> {
        let number = Reached::Waiting.number();
        let query = format!(
            "SELECT {ENGAGEMENT} FROM engagement WHERE reached = {number} AND reviewer IS NULL AND due = 0
            AND id IN (SELECT parent FROM engagement WHERE parent IS NOT NULL) ORDER BY number"
        );
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map([], read_engaged)?.map(|row| row?).collect()
    }

    /// Engagements whose last step was written then or later, the first one first.
    pub(crate) fn engagements_since(&self, at: i64) -> Result<Vec<Engaged>, EngineError> {
        let query = format!(
            "SELECT {ENGAGEMENT} FROM engagement WHERE
            (SELECT at FROM step WHERE engagement = number ORDER BY position DESC LIMIT 1) >= ?1 ORDER BY number"
        );
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map([at], read_engaged)?.map(|row| row?).collect()
    }

    /// The last engagements of a caller, the last one first.
    pub(crate) fn engagements_of(&self, caller: &str, limit: usize) -> Result<Vec<Engaged>, EngineError> {
        let query = format!("SELECT {ENGAGEMENT} FROM engagement WHERE caller = ?1 ORDER BY number DESC LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map(params![caller, limit as i64], read_engaged)?.map(|row| row?).collect()
    }

    /// Engagements that wait for this reviewer, the newest first: whatever nobody settles must not hide what comes later.
    pub(crate) fn engagements_before(&self, reviewer: &str, limit: usize) -> Result<Vec<Engaged>, EngineError> {
        let query = format!("SELECT {ENGAGEMENT} FROM engagement WHERE reviewer = ?1 ORDER BY number DESC LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map(params![reviewer, limit as i64], read_engaged)?.map(|row| row?).collect()
    }

    /// How many steps an engagement has; none when there is no such engagement.
    pub(crate) fn step_count(&self, id: &str) -> Result<Option<u64>, EngineError> {
        Ok(position(&self.connection, id)?.map(|(_, count)| count))
    }

    /// The steps of an engagement, in order.
    pub(crate) fn steps(&self, id: &str) -> Result<Vec<Noted>, EngineError> {
        let query = "SELECT position, at, body, checksum FROM step
            WHERE engagement = (SELECT number FROM engagement WHERE id = ?1) ORDER BY position";
        let mut statement = self.connection.prepare_cached(query)?;
        let mut rows = statement.query([id])?;
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            let step = Noted {
                engagement: id.to_owned(),
                position: row.get::<_, i64>(0)? as u64,
                at: row.get(1)?,
                body: row.get(2)?,
            };
            if row.get::<_, Vec<u8>>(3)? != step.checksum() || step.position != steps.len() as u64 {
                return Err(EngineError::Meaningless("a step"));
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

fn read_engaged(row: &Row<'_>) -> rusqlite::Result<Result<Engaged, EngineError>> {
    let broken = Err(EngineError::Meaningless("an engagement"));
    let Some(reached) = Reached::of(row.get(7)?) else { return Ok(broken) };
    let engaged = Engaged {
        id: row.get(0)?,
        agent: row.get(1)?,
        document: row.get(2)?,
        caller: row.get(3)?,
        parent: row.get::<_, Option<String>>(4)?.zip(row.get(5)?),
        begun_at: row.get(6)?,
        reached,
        reviewer: row.get(8)?,
        due: row.get(9)?,
    };
    let sound = row.get::<_, Vec<u8>>(10)? == engaged.checksum();
    Ok(if sound { Ok(engaged) } else { broken })
}
