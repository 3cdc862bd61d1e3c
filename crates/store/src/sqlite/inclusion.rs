//! The tables of the tree over public manifests.

use super::{EngineError, Reader};
use crate::change::{Hash, Sequence};
use crate::feed::Feed;
use crate::inclusion::{Branch, Leaf, hash_of};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Writes what the tree grew by; the caller's transaction holds it together.
pub(super) fn apply(connection: &Connection, feed: &Feed) -> Result<(), EngineError> {
    if feed.felled {
        connection.execute_batch("DELETE FROM leaf; DELETE FROM branch;")?;
    }
    for leaf in &feed.leaves {
        connection
            .prepare_cached(
                "INSERT INTO leaf (number, manifest, sequence, public, withdrawn) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![leaf.index as i64, leaf.manifest, leaf.sequence as i64, leaf.kept(), leaf.withdrawn])?;
    }
    for branch in &feed.branches {
        connection
            .prepare_cached("INSERT INTO branch (level, position, hash) VALUES (?1, ?2, ?3)")?
            .execute(params![branch.level, branch.position as i64, branch.kept()])?;
    }
    Ok(())
}

impl Reader {
    /// How many leaves the tree has.
    pub(crate) fn leaf_count(&self) -> Result<u64, EngineError> {
        let query = "SELECT coalesce(max(number) + 1, 0) FROM leaf";
        Ok(self.connection.query_row(query, [], |row| row.get::<_, i64>(0))? as u64)
    }

    /// The leaf that speaks for a manifest at a change.
    pub(crate) fn leaf_of(&self, manifest: &str, at: Sequence) -> Result<Option<Leaf>, EngineError> {
        let query = "SELECT number, manifest, sequence, public, withdrawn FROM leaf
            WHERE manifest = +?1 AND sequence <= ?2 ORDER BY sequence DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(query)?;
        statement.query_row(params![manifest, at as i64], read_leaf).optional()?.transpose()
    }

    /// The hash of a whole subtree; none when it is not what was written.
    pub(crate) fn branch(&self, level: u8, position: u64) -> Result<Option<Hash>, EngineError> {
        let query = "SELECT hash FROM branch WHERE level = ?1 AND position = ?2";
        let mut statement = self.connection.prepare_cached(query)?;
        let found = statement.query_row(params![level, position as i64], |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let sound = |kept: Vec<u8>| {
            let hash = hash_of(&kept)?;
            (Branch { level, position, hash }.kept() == kept).then_some(hash)
        };
        Ok(found.and_then(sound))
    }
}

fn read_leaf(row: &Row<'_>) -> rusqlite::Result<Result<Leaf, EngineError>> {
    let kept = row.get::<_, Vec<u8>>(3)?;
    let broken = Err(EngineError::Meaningless("a leaf of the tree"));
    let Some(public) = hash_of(&kept) else { return Ok(broken) };
    let leaf = Leaf {
        index: row.get::<_, i64>(0)? as u64,
        manifest: row.get(1)?,
        sequence: row.get::<_, i64>(2)? as u64,
        public,
        withdrawn: row.get(4)?,
    };
    Ok(if leaf.kept() == kept { Ok(leaf) } else { broken })
}
