//! The whole schema on one page, and the version of the file.
//!
//! The statements are SQL that PostgreSQL reads, too, but for `BLOB` and `INTEGER PRIMARY KEY`.

/// The version of the file format; a file of a later one is refused, one of an earlier one is brought up to it.
///
/// Format 4 has no other tables than format 3, and one more kind of records, which an earlier program would take for damage.
/// Format 5 keeps engagements. Format 6 has the same tables; steps may be in the file `trail` that an earlier program does
/// not look into. Format 7 remembers which records subscribers were told of.
pub(crate) const FORMAT: u32 = 7;

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

/// What format 2 added: standing intents, a journal for each, what waits to be told, and how far the log is delivered.
pub(crate) const FEED: &str = "
CREATE TABLE subscription (
    number          INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL,
    issuer          TEXT    NOT NULL,
    principal       TEXT    NOT NULL,
    intent_id       TEXT    NOT NULL,
    intent          BLOB    NOT NULL,
    acknowledgement BLOB    NOT NULL,
    start           INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    standing        BLOB    NOT NULL,
    checksum        BLOB    NOT NULL
);
CREATE UNIQUE INDEX subscription_by_id ON subscription (id);
CREATE UNIQUE INDEX subscription_by_intent ON subscription (issuer, intent_id);

CREATE TABLE event (
    subscription    INTEGER NOT NULL,
    cursor          INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    body            BLOB    NOT NULL,
    checksum        BLOB    NOT NULL
);
CREATE UNIQUE INDEX event_by_cursor ON event (subscription, cursor);

CREATE TABLE pending (
    subscription    INTEGER NOT NULL,
    record          TEXT    NOT NULL,
    since           INTEGER NOT NULL,
    told            INTEGER NOT NULL,
    latest          INTEGER NOT NULL,
    evidence        INTEGER NOT NULL,
    PRIMARY KEY (subscription, record)
) WITHOUT ROWID;
CREATE INDEX pending_by_time ON pending (subscription, since);

CREATE TABLE delivery (
    one             INTEGER PRIMARY KEY,
    position        INTEGER NOT NULL
);
";

/// What format 3 added: where events are brought and which were given up, and the tree over public manifests.
///
/// The table `delivery` got two more numbers: how far the tree is level with the log (2), and how many times something
/// of standing intents was written (3), so that the head can promise that, too. Format 6 added how far the trail of
/// engagements is in the tables (4).
pub(crate) const BROUGHT: &str = "
CREATE TABLE webhook (
    subscription    INTEGER PRIMARY KEY,
    kept            BLOB    NOT NULL
);

CREATE TABLE dead_letter (
    subscription    INTEGER NOT NULL,
    cursor          INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    status          INTEGER NOT NULL,
    PRIMARY KEY (subscription, cursor)
) WITHOUT ROWID;

CREATE TABLE leaf (
    number          INTEGER PRIMARY KEY,
    manifest        TEXT    NOT NULL,
    sequence        INTEGER NOT NULL,
    public          BLOB    NOT NULL,
    withdrawn       INTEGER NOT NULL
);
CREATE UNIQUE INDEX leaf_by_manifest ON leaf (manifest, sequence);

CREATE TABLE branch (
    level           INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    hash            BLOB    NOT NULL,
    PRIMARY KEY (level, position)
) WITHOUT ROWID;
";

/// What format 7 added: which records a subscriber was told to be in its answer and which no longer, where that is not to
/// be seen from the records alone; and the same of earlier journals.
pub(crate) const TOLD: &str = "
CREATE TABLE told (
    subscription    INTEGER NOT NULL,
    record          TEXT    NOT NULL,
    inside          INTEGER NOT NULL,
    PRIMARY KEY (subscription, record)
) WITHOUT ROWID;

INSERT INTO told (subscription, record, inside)
SELECT subscription, record, change <> 'left' FROM (
    SELECT event.subscription AS subscription,
        CASE WHEN json_valid(CAST(event.body AS TEXT)) THEN json_extract(CAST(event.body AS TEXT), '$.manifest_id') END
            AS record,
        CASE WHEN json_valid(CAST(event.body AS TEXT)) THEN json_extract(CAST(event.body AS TEXT), '$.set_change') END
            AS change,
        max(event.cursor)
    FROM event JOIN subscription ON subscription.number = event.subscription
    WHERE CASE WHEN json_valid(CAST(subscription.intent AS TEXT))
        THEN json_extract(CAST(subscription.intent AS TEXT), '$.quality_floor') END IS NOT NULL
    GROUP BY 1, 2
) WHERE record IS NOT NULL AND change IS NOT NULL;
";

/// What format 5 added: documents about agents, engagements with them, and the steps of each.
pub(crate) const ENGAGEMENTS: &str = "
CREATE TABLE spec (
    digest      TEXT    NOT NULL PRIMARY KEY,
    agent       TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    body        BLOB    NOT NULL
) WITHOUT ROWID;

CREATE TABLE engagement (
    number      INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    document    TEXT    NOT NULL,
    caller      TEXT,
    parent      TEXT,
    place       TEXT,
    begun_at    INTEGER NOT NULL,
    reached      INTEGER NOT NULL,
    reviewer    TEXT,
    due         INTEGER NOT NULL,
    checksum    BLOB    NOT NULL
);
CREATE UNIQUE INDEX engagement_by_id ON engagement (id);
CREATE INDEX engagement_by_caller ON engagement (caller, number);
CREATE INDEX engagement_by_reviewer ON engagement (reviewer, number) WHERE reviewer IS NOT NULL;
CREATE INDEX engagement_by_reached ON engagement (reached, number) WHERE reached < 2;

CREATE TABLE step (
    engagement  INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    checksum    BLOB    NOT NULL,
    PRIMARY KEY (engagement, position)
) WITHOUT ROWID;
";
