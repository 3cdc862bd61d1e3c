//! A trail with every byte altered and every tail cut off, its halves written in turn, and a disk that takes nothing.

use super::*;

fn engaged(id: &str, reached: Reached) -> Engaged {
    Engaged {
        id: id.into(),
        agent: "clerk".into(),
        document: "d".into(),
        caller: Some("did:web:a.example".into()),
        parent: Some(("p".into(), "3".into())),
        begun_at: -7,
        reached,
        reviewer: None,
        due: 12,
    }
}

fn step(id: &str, position: u64, bytes: usize) -> Noted {
    Noted { engagement: id.into(), position, at: 5, body: vec![position as u8; bytes] }
}

fn nothing(_: &str) -> Result<Option<u64>, ReadError> {
    Ok(None)
}

fn open(folder: &Path, folded: Option<u64>) -> (Trail, Journal) {
    let (trail, journal) = Trail::open(folder, folded).unwrap();
    (trail, journal.unwrap_or_default())
}

/// Writes so many entries of one step each about one engagement; the last one settled is told.
fn written(folder: &Path, entries: u64, settled: u64) -> Trail {
    let (trail, _) = open(folder, None);
    for position in 0..entries {
        let engagements = if position == 0 { vec![engaged("a", Reached::Running)] } else { Vec::new() };
        let journal = Journal { engagements, steps: vec![step("a", position, 40)], ..Journal::default() };
        assert!(matches!(trail.write(journal, &nothing), Ok(Written::Entry(entry, false)) if entry == position + 1));
        if position + 1 == settled {
            trail.settle(settled).unwrap();
        }
    }
    trail
}

#[test]
fn what_was_written_is_found_again_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let trail = written(folder.path(), 3, 0);
    assert_eq!(trail.count("a"), Some((3, 3)));
    assert_eq!(trail.engaged("a"), Some((engaged("a", Reached::Running), 3)));
    drop(trail);
    let (trail, journal) = open(folder.path(), None);
    assert_eq!(journal.engagements, [engaged("a", Reached::Running)]);
    assert_eq!(journal.steps, [step("a", 0, 40), step("a", 1, 40), step("a", 2, 40)]);
    assert_eq!(trail.last(), 3);
    let (_, journal) = open(folder.path(), Some(2));
    assert_eq!((journal.engagements.len(), journal.steps), (0, vec![step("a", 2, 40)]));
    assert!(Trail::open(folder.path(), Some(3)).unwrap().1.is_none(), "the tables have everything");
}

#[test]
fn of_what_was_not_settled_a_beginning_survives_and_of_what_was_nothing_is_missing_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    drop(written(folder.path(), 6, 3));
    let path = folder.path().join(TRAIL);
    let whole = std::fs::read(&path).unwrap();
    let size = entry(&whole[..]).unwrap().bytes;
    let small = entry(&whole[size..]).unwrap().bytes;
    let end = size + 5 * small;
    for place in 0..end {
        let mut altered = whole.clone();
        altered[place] ^= 0x40;
        let number = if place < size { 1 } else { 2 + (place - size) / small } as u64;
        match read(&altered, 0) {
            // Padding is nobody's.
            Ok(found) if found.last == 6 => assert!(altered[place] == 0x40 && whole[place] == 0, "{place}"),
            Ok(found) => {
                assert_eq!(found.last, number - 1, "{place}");
                assert!(number > 3 && found.journal.steps.len() as u64 == found.last, "{place}");
            }
            Err(flaw) => {
                assert_eq!(flaw, Flaw::TrailMissing { promised: 3, found: number - 1 }, "{place}");
                assert!(number <= 3, "{place}");
            }
        }
    }
    // The same where the rest never reached the disk: nobody was promised more than three.
    for place in size + 2 * small..end {
        let mut torn = whole.clone();
        torn[place..].fill(0);
        assert_eq!(read(&torn, 0).map(|found| found.last >= 3), Ok(true), "{place}");
    }
}

#[test]
fn a_step_that_is_not_the_next_one_is_refused_with_everything_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let trail = written(folder.path(), 2, 0);
    let five = |id: &str| Ok((id == "old").then_some(5));
    for steps in [
        vec![step("a", 1, 1)],
        vec![step("a", 3, 1)],
        vec![step("a", 2, 1), step("a", 2, 1)],
        vec![step("z", 0, 1)],
        vec![step("old", 4, 1)],
    ] {
        let refused = trail.write(Journal { steps, ..Journal::default() }, &five);
        assert!(matches!(refused, Err(CommitError::NameTaken { .. })));
    }
    assert_eq!(trail.count("a"), Some((2, 2)));
    let journal = Journal { steps: vec![step("old", 5, 1), step("a", 2, 1)], ..Journal::default() };
    assert!(matches!(trail.write(journal, &five), Ok(Written::Entry(3, false))));
    assert_eq!(trail.count("old"), Some((6, 3)));
}

#[test]
fn halves_are_written_in_turn_and_only_over_what_the_tables_have() {
    let folder = tempfile::tempdir().unwrap();
    let trail = written(folder.path(), 1, 0);
    let (mut position, mut folds) = (1, 0);
    while folds < 40 {
        let journal = Journal { steps: vec![step("a", position, 60_000)], ..Journal::default() };
        let count = |_: &str| Ok(Some(position));
        let Ok(Written::Entry(number, due)) = trail.write(journal, &count) else { panic!("not written") };
        position += 1;
        if due {
            let (journal, upto) = trail.fold().unwrap();
            assert!(trail.fold().is_none(), "one at a time");
            assert_eq!((upto, journal.steps.last().map(|step| step.position)), (number, Some(position - 1)));
            assert_eq!(trail.steps("a").0.len(), journal.steps.len());
            trail.moved(upto, Ok(()));
            assert_eq!(trail.count("a"), None, "the tables know");
            folds += 1;
        }
    }
    assert_eq!(std::fs::metadata(folder.path().join(TRAIL)).unwrap().len(), 2 * HALF as u64);
    let last = trail.last();
    drop(trail);
    let bytes = std::fs::read(folder.path().join(TRAIL)).unwrap();
    let found = read(&bytes, last - 20).unwrap();
    assert_eq!((found.last, found.journal.steps.len()), (last, 20), "entries across the turn follow each other");
}

#[test]
fn what_the_tables_refuse_stays_and_comes_before_what_is_newer() {
    let folder = tempfile::tempdir().unwrap();
    let trail = written(folder.path(), 2, 0);
    let (_, upto) = trail.fold().unwrap();
    let newer =
        Journal { engagements: vec![engaged("a", Reached::Over)], steps: vec![step("a", 2, 40)], ..Journal::default() };
    trail.write(newer, &nothing).unwrap();
    assert_eq!(trail.steps("a").0.len(), 3);
    trail.moved(upto, Err(failed("full".into())));
    assert!(trail.await_fold().is_err());
    let (journal, upto) = trail.fold().unwrap();
    assert_eq!((upto, journal.engagements), (3, vec![engaged("a", Reached::Over)]));
    assert_eq!(journal.steps.iter().map(|step| step.position).collect::<Vec<_>>(), [0, 1, 2]);
    // While nothing goes into the tables the file fills up, and then nothing more is taken.
    trail.moved(upto, Err(failed("full".into())));
    let mut refused = false;
    for position in 3..100 {
        let journal = Journal { steps: vec![step("a", position, 100_000)], ..Journal::default() };
        refused |= trail.write(journal, &nothing).is_err();
    }
    assert!(refused && trail.steps("a").0.len() < 50);
}

#[test]
fn a_trail_that_is_gone_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    drop(written(folder.path(), 2, 2));
    std::fs::remove_file(folder.path().join(TRAIL)).unwrap();
    assert!(matches!(Trail::open(folder.path(), Some(1)), Err(OpenError::Damaged(Flaw::TrailGone))));
    assert!(Trail::open(folder.path(), None).is_ok());
}

#[test]
fn what_is_too_large_for_an_entry_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let trail = written(folder.path(), 1, 0);
    let large = Journal { steps: vec![step("a", 1, ENTRY_BYTES_MAX)], ..Journal::default() };
    assert!(matches!(trail.write(large, &nothing), Ok(Written::Large(journal)) if journal.steps.len() == 1));
    assert_eq!(trail.last(), 1);
}
