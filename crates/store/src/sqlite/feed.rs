//! The tables of standing intents and their journals.

use super::{EngineError, Reader, inclusion};
use crate::change::Sequence;
use crate::feed::{Event, Feed, Pending, Standing, Subscription};
use crate::webhook::{DeadLetter, Webhook};
use rusqlite::{Connection, OptionalExtension, Row, params};

const SUBSCRIPTION: &str =
    "number, id, issuer, principal, intent_id, intent, acknowledgement, start, expires_at, standing, checksum";

/// Writes what delivery made; the caller's transaction holds it together.
pub(super) fn apply(connection: &Connection, feed: &Feed) -> Result<(), EngineError> {
    for subscription in &feed.subscribed {
        connection
            .prepare_cached(&format!(
                "INSERT INTO subscription ({SUBSCRIPTION}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            ))?
            .execute(params![
                subscription.number as i64,
                subscription.id,
                subscription.issuer,
                subscription.principal,
                subscription.intent_id,
                subscription.intent,
                subscription.acknowledgement,
                subscription.start as i64,
                subscription.expires_at,
                subscription.standing.kept(subscription.number),
                subscription.checksum(),
            ])?;
    }
    for event in &feed.events {
        connection
            .prepare_cached("INSERT INTO event (subscription, cursor, at, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![event.subscription as i64, event.cursor as i64, event.at, event.body, event.checksum()])?;
    }
    for (number, standing) in &feed.standings {
        connection
            .prepare_cached("UPDATE subscription SET standing = ?2 WHERE number = ?1")?
            .execute(params![*number as i64, standing.kept(*number)])?;
    }
    for (subscription, record) in &feed.settled {
        connection
            .prepare_cached("DELETE FROM pending WHERE subscription = ?1 AND record = ?2")?
            .execute(params![*subscription as i64, record])?;
    }
    for pending in &feed.pending {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO pending (subscription, record, since, told, latest, evidence) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                pending.subscription as i64,
                pending.record,
                pending.since as i64,
                pending.told as i64,
                pending.latest as i64,
                pending.evidence,
            ])?;
    }
    for (subscription, record, inside) in &feed.told {
        match inside {
            Some(inside) => connection
                .prepare_cached("INSERT OR REPLACE INTO told (subscription, record, inside) VALUES (?1, ?2, ?3)")?
                .execute(params![*subscription as i64, record, inside])?,
            None => connection
                .prepare_cached("DELETE FROM told WHERE subscription = ?1 AND record = ?2")?
                .execute(params![*subscription as i64, record])?,
        };
    }
    for (subscription, first) in &feed.forgotten {
        connection
            .prepare_cached("DELETE FROM event WHERE subscription = ?1 AND cursor < ?2")?
            .execute(params![*subscription as i64, *first as i64])?;
    }
    for number in &feed.removed {
        for query in [
            "DELETE FROM webhook WHERE subscription = ?1",
            "DELETE FROM dead_letter WHERE subscription = ?1",
            "DELETE FROM event WHERE subscription = ?1",
            "DELETE FROM pending WHERE subscription = ?1",
            "DELETE FROM told WHERE subscription = ?1",
            "DELETE FROM subscription WHERE number = ?1",
        ] {
            connection.prepare_cached(query)?.execute([*number as i64])?;
        }
    }
    for (number, webhook) in &feed.webhooks {
        connection
            .prepare_cached("INSERT OR REPLACE INTO webhook (subscription, kept) VALUES (?1, ?2)")?
            .execute(params![*number as i64, webhook.kept(*number)])?;
    }
    for letter in &feed.dead_letters {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO dead_letter (subscription, cursor, at, attempts, status) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                letter.subscription as i64,
                letter.cursor as i64,
                letter.at,
                letter.attempts as i64,
                letter.status,
            ])?;
    }
    for (subscription, cursor) in &feed.buried {
        connection
            .prepare_cached("DELETE FROM dead_letter WHERE subscription = ?1 AND cursor = ?2")?
            .execute([*subscription as i64, *cursor as i64])?;
    }
    inclusion::apply(connection, feed)?;
    for (name, number) in [(DELIVERED, feed.position), (INDEXED, feed.indexed), (FOLDED, feed.folded)] {
        if let Some(number) = number {
            connection
                .prepare_cached("INSERT OR REPLACE INTO delivery (one, position) VALUES (?1, ?2)")?
                .execute([name, number as i64])?;
        }
    }
    Ok(())
}

/// Counts one more time that something of standing intents was written; how many times that is now.
pub(super) fn count(connection: &Connection) -> Result<u64, EngineError> {
    let query = "INSERT INTO delivery (one, position) VALUES (?1, 1)
        ON CONFLICT (one) DO UPDATE SET position = position + 1 RETURNING position";
    Ok(connection.prepare_cached(query)?.query_row([WRITTEN], |row| row.get::<_, i64>(0))? as u64)
}

/// The numbers of the table `delivery`.
const DELIVERED: i64 = 1;
const INDEXED: i64 = 2;
const WRITTEN: i64 = 3;
const FOLDED: i64 = 4;

/// Takes everything out of a copy: whoever restores it must not give a cursor another content than it had.
pub(super) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "BEGIN IMMEDIATE; DELETE FROM event; DELETE FROM pending; DELETE FROM subscription; DELETE FROM delivery;
        DELETE FROM told; DELETE FROM webhook; DELETE FROM dead_letter; DELETE FROM leaf; DELETE FROM branch; COMMIT;",
    )
}

impl Reader {
    /// All standing intents after a number, in order, at most `limit`.
    pub(crate) fn subscriptions_after(&self, number: u64, limit: usize) -> Result<Vec<Subscription>, EngineError> {
        let query = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE number > ?1 ORDER BY number LIMIT ?2");
        let mut statement = self.connection.prepare_cached(&query)?;
        statement.query_map(params![number as i64, limit as i64], read_subscription)?.map(|row| row?).collect()
    }

    /// A standing intent by its name.
    pub(crate) fn subscription(&self, id: &str) -> Result<Option<Subscription>, EngineError> {
        let query = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE id = ?1");
        self.connection.prepare_cached(&query)?.query_row([id], read_subscription).optional()?.transpose()
    }

    /// A standing intent by what its issuer calls it.
    pub(crate) fn subscription_of(&self, issuer: &str, intent_id: &str) -> Result<Option<Subscription>, EngineError> {
        let query = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE issuer = ?1 AND intent_id = ?2");
        self.connection
            .prepare_cached(&query)?
            .query_row([issuer, intent_id], read_subscription)
            .optional()?
            .transpose()
    }

    /// Events after a cursor, in order, at most `limit` of them, and no more after `bytes` are reached.
    pub(crate) fn events_after(
        &self,
        subscription: u64,
        cursor: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Event>, EngineError> {
        let query = "SELECT cursor, at, body, checksum FROM event WHERE subscription = ?1 AND cursor > ?2
            ORDER BY cursor LIMIT ?3";
        let mut statement = self.connection.prepare_cached(query)?;
        let mut rows = statement.query(params![subscription as i64, cursor as i64, limit as i64])?;
        let (mut events, mut read) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let event =
                Event { subscription, cursor: row.get::<_, i64>(0)? as u64, at: row.get(1)?, body: row.get(2)? };
            if row.get::<_, Vec<u8>>(3)? != event.checksum() {
                return Err(EngineError::Meaningless("an event"));
            }
            read += event.body.len();
            events.push(event);
            if read >= bytes {
                break;
            }
        }
        Ok(events)
    }

    /// When an event was written.
    pub(crate) fn event_time(&self, subscription: u64, cursor: u64) -> Result<Option<i64>, EngineError> {
        let query = "SELECT at FROM event WHERE subscription = ?1 AND cursor = ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        Ok(statement.query_row(params![subscription as i64, cursor as i64], |row| row.get(0)).optional()?)
    }

    /// The first events of a journal, as cursor, time and bytes.
    pub(crate) fn oldest_events(&self, subscription: u64, limit: usize) -> Result<Vec<(u64, i64, u64)>, EngineError> {
        let query = "SELECT cursor, at, length(body) FROM event WHERE subscription = ?1 ORDER BY cursor LIMIT ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get::<_, i64>(2)? as u64));
        Ok(statement.query_map(params![subscription as i64, limit as i64], read)?.collect::<Result<_, _>>()?)
    }

    /// What waits for a subscriber, the longest first.
    pub(crate) fn pending(&self, subscription: u64, limit: usize) -> Result<Vec<Pending>, EngineError> {
        let query = "SELECT subscription, record, since, told, latest, evidence FROM pending WHERE subscription = ?1
            ORDER BY since LIMIT ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        let rows = statement.query_map(params![subscription as i64, limit as i64], read_pending)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// What waits for a subscriber about one record.
    pub(crate) fn pending_about(&self, subscription: u64, record: &str) -> Result<Option<Pending>, EngineError> {
        let query = "SELECT subscription, record, since, told, latest, evidence FROM pending
            WHERE subscription = ?1 AND record = ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        Ok(statement.query_row(params![subscription as i64, record], read_pending).optional()?)
    }

    /// Whether a subscriber was told last that a record is in its answer; none when it was told nothing of it.
    pub(crate) fn told(&self, subscription: u64, record: &str) -> Result<Option<bool>, EngineError> {
        let query = "SELECT inside FROM told WHERE subscription = ?1 AND record = ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        Ok(statement.query_row(params![subscription as i64, record], |row| row.get(0)).optional()?)
    }

    /// How many records wait for a subscriber.
    pub(crate) fn pending_count(&self, subscription: u64) -> Result<u64, EngineError> {
        let query = "SELECT count(*) FROM pending WHERE subscription = ?1";
        let mut statement = self.connection.prepare_cached(query)?;
        Ok(statement.query_row([subscription as i64], |row| row.get::<_, i64>(0))? as u64)
    }

    /// How far the trail of engagements is in the tables; none when it never was.
    pub(crate) fn folded(&self) -> Result<Option<u64>, EngineError> {
        self.delivery(FOLDED)
    }

    /// How far the change log is delivered.
    pub(crate) fn delivered(&self) -> Result<Option<Sequence>, EngineError> {
        self.delivery(DELIVERED)
    }

    /// How far the tree is level with the log.
    pub(crate) fn indexed(&self) -> Result<Sequence, EngineError> {
        Ok(self.delivery(INDEXED)?.unwrap_or_default())
    }

    /// How many times something of standing intents was written.
    pub(crate) fn written(&self) -> Result<u64, EngineError> {
        Ok(self.delivery(WRITTEN)?.unwrap_or_default())
    }

    fn delivery(&self, name: i64) -> Result<Option<u64>, EngineError> {
        let query = "SELECT position FROM delivery WHERE one = ?1";
        let found = self.connection.prepare_cached(query)?.query_row([name], |row| row.get::<_, i64>(0)).optional()?;
        Ok(found.map(|position| position as u64))
    }

    /// Everywhere that events are brought.
    pub(crate) fn webhooks(&self) -> Result<Vec<(u64, Webhook)>, EngineError> {
        let mut statement = self.connection.prepare_cached("SELECT subscription, kept FROM webhook ORDER BY 1")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?)))?;
        rows.map(|row| {
            let (number, kept) = row?;
            let webhook = Webhook::read(number, &kept).ok_or(EngineError::Meaningless("a webhook"))?;
            Ok((number, webhook))
        })
        .collect()
    }

    /// The events of a subscriber that were given up, the first one first.
    pub(crate) fn dead_letters(&self, subscription: u64) -> Result<Vec<DeadLetter>, EngineError> {
        let query = "SELECT cursor, at, attempts, status FROM dead_letter WHERE subscription = ?1 ORDER BY cursor";
        let mut statement = self.connection.prepare_cached(query)?;
        let read = |row: &Row<'_>| {
            Ok(DeadLetter {
                subscription,
                cursor: row.get::<_, i64>(0)? as u64,
                at: row.get(1)?,
                attempts: row.get::<_, i64>(2)? as u64,
                status: row.get(3)?,
            })
        };
        Ok(statement.query_map([subscription as i64], read)?.collect::<Result<_, _>>()?)
    }

    /// Standing intents whose row or whose journal is not what was written.
    pub(crate) fn broken_journals(&self) -> Result<u64, EngineError> {
        let mut statement = self.connection.prepare(&format!("SELECT {SUBSCRIPTION} FROM subscription"))?;
        let mut broken = 0;
        for row in statement.query_map([], read_subscription)? {
            let sound = match row? {
                Ok(subscription) => self.is_dense(&subscription)?,
                Err(_) => false,
            };
            broken += u64::from(!sound);
        }
        let mut webhooks = self.connection.prepare("SELECT subscription, kept FROM webhook")?;
        for row in webhooks.query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Vec<u8>>(1)?)))? {
            let (number, kept) = row?;
            broken += u64::from(Webhook::read(number, &kept).is_none());
        }
        Ok(broken)
    }

    fn is_dense(&self, subscription: &Subscription) -> Result<bool, EngineError> {
        let (mut expected, number) = (subscription.standing.first, subscription.number);
        loop {
            let events = match self.events_after(number, expected.saturating_sub(1), 1_000, usize::MAX) {
                Ok(events) => events,
                Err(EngineError::Meaningless(_)) => return Ok(false),
                Err(error) => return Err(error),
            };
            if events.is_empty() {
                return Ok(expected == subscription.standing.cursor + 1);
            }
            for event in events {
                if event.cursor != expected {
                    return Ok(false);
                }
                expected += 1;
            }
        }
    }
}

fn read_subscription(row: &Row<'_>) -> rusqlite::Result<Result<Subscription, EngineError>> {
    let broken = Err(EngineError::Meaningless("a standing intent"));
    let number = row.get::<_, i64>(0)? as u64;
    let Some(standing) = Standing::read(number, &row.get::<_, Vec<u8>>(9)?) else { return Ok(broken) };
    let subscription = Subscription {
        number,
        id: row.get(1)?,
        issuer: row.get(2)?,
        principal: row.get(3)?,
        intent_id: row.get(4)?,
        intent: row.get(5)?,
        acknowledgement: row.get(6)?,
        start: row.get::<_, i64>(7)? as u64,
        expires_at: row.get(8)?,
        standing,
    };
    let sound = row.get::<_, Vec<u8>>(10)? == subscription.checksum();
    Ok(if sound { Ok(subscription) } else { broken })
}

fn read_pending(row: &Row<'_>) -> rusqlite::Result<Pending> {
    Ok(Pending {
        subscription: row.get::<_, i64>(0)? as u64,
        record: row.get(1)?,
        since: row.get::<_, i64>(2)? as u64,
        told: row.get::<_, i64>(3)? as u64,
        latest: row.get::<_, i64>(4)? as u64,
        evidence: row.get(5)?,
    })
}
