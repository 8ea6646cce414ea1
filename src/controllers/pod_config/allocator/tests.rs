//! Tests of the next state of one pool.

use super::*;

fn wanted(uid: &str, attachment: &str) -> AddressRequest {
    let allocation = Allocation {
        pod: format!("pod-{uid}"),
        node: "n1".to_owned(),
        pod_config: "net".to_owned(),
        pod_config_uid: "c".to_owned(),
        attachment: attachment.to_owned(),
        bridge: "br0".to_owned(),
        address: address(1),
        ending: false,
        release: false,
    };
    AddressRequest { uid: uid.to_owned(), allocation, may_begin: true, remembered: None }
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 1, 0, last])
}

/// Returns the next state of a pool of eight addresses, and the reasons for missing addresses. A line is `uid
/// attachment address`, followed by `!` if it is to be released.
fn state(
    entries: &Entries,
    wanted: &[AddressRequest],
    seen: &[LiveLink],
    busy: &[(&str, &str)],
    gone: &[&str],
) -> (Vec<String>, Vec<(usize, Without)>) {
    let busy = busy.iter().map(|(uid, attachment)| ((*uid).to_owned(), (*attachment).to_owned())).collect();
    let next = next(&Input {
        range: Range::parse("10.1.0.0/29").expect("a range"),
        entries,
        wanted,
        live: seen,
        busy: &busy,
        is_frozen: &|allocation| allocation.pod_config_uid == "frozen",
        is_gone: &|uid, _| gone.contains(&uid),
    });
    let lines = next.entries.iter().flat_map(|(uid, list)| {
        list.iter().map(move |one| {
            let mark = if one.release { "!" } else { "" };
            format!("{uid} {} {}{mark}", one.attachment, one.address)
        })
    });
    (lines.collect(), next.without)
}

/// A pool with allocations for these pods, from the lowest address on.
fn pool(uids: &[&str]) -> Entries {
    let list = uids
        .iter()
        .zip(2..)
        .map(|(uid, last)| (uid.to_string(), vec![wanted(uid, "x").allocation(address(last))]));
    list.collect()
}

fn seen(uid: &str, last: u8) -> LiveLink {
    LiveLink { uid: uid.to_owned(), allocation: wanted(uid, "x").allocation(address(last)), is_own: true }
}

#[test]
fn the_lowest_free_address_is_taken_and_kept() {
    let all = ["a", "b"].map(|uid| wanted(uid, "x"));
    assert_eq!(state(&Entries::new(), &all, &[], &[], &[]).0, ["a x 10.1.0.2", "b x 10.1.0.3"]);
    let all = ["0", "a", "c"].map(|uid| wanted(uid, "x"));
    let (lines, without) = state(&pool(&["a", "b", "c"]), &all, &[], &[], &[]);
    assert_eq!(
        lines,
        ["0 x 10.1.0.5", "a x 10.1.0.2", "b x 10.1.0.3!", "c x 10.1.0.4"],
        "b still has a link"
    );
    assert!(without.is_empty());
    let (lines, _) = state(&pool(&["a", "b", "c"]), &all, &[], &[], &["b"]);
    assert_eq!(lines, ["0 x 10.1.0.3", "a x 10.1.0.2", "c x 10.1.0.4"]);
}

#[test]
fn a_released_allocation_stays_until_its_link_is_gone() {
    let mut entries = pool(&["a"]);
    entries.get_mut("a").expect("there")[0].release = true;
    let all = [wanted("a", "x")];
    assert_eq!(
        state(&entries, &all, &[], &[], &[]),
        (vec!["a x 10.1.0.2!".to_owned()], vec![(0, Without::Leaving)])
    );
    assert_eq!(state(&entries, &all, &[], &[("a", "x")], &["a"]), (Vec::new(), vec![(0, Without::Leaving)]));
    assert_eq!(state(&entries, &all, &[], &[], &["a"]).0, ["a x 10.1.0.2"]);
}

#[test]
fn a_live_link_keeps_its_address_even_if_the_record_lacks_it() {
    let all = [wanted("a", "x"), wanted("b", "x")];
    // A link of a pod that needs it, a link of a pod that does not, and a link that cannot be recorded.
    let (lines, _) = state(&Entries::new(), &all, &[seen("b", 2), seen("z", 3)], &[], &[]);
    assert_eq!(lines, ["a x 10.1.0.4", "b x 10.1.0.2", "z x 10.1.0.3!"]);
    let other = LiveLink { is_own: false, ..seen("z", 2) };
    assert_eq!(state(&Entries::new(), &all, &[other], &[], &[]).0, ["a x 10.1.0.3", "b x 10.1.0.4"]);
    assert_eq!(state(&Entries::new(), &all, &[seen("a", 1)], &[], &[]).0, ["a x 10.1.0.2", "b x 10.1.0.3"]);
    let lines = state(&pool(&["a"]), &all, &[seen("a", 3)], &[], &[]).0;
    assert_eq!(lines, ["a x 10.1.0.2", "b x 10.1.0.4"], "the record wins, and the link is being recreated");
}

#[test]
fn remembered_addresses_are_used_before_the_lowest_free_ones() {
    let remembered =
        |uid: &str, last: u8| AddressRequest { remembered: Some(address(last)), ..wanted(uid, "x") };
    let all =
        [wanted("a", "x"), remembered("b", 2), remembered("c", 2), remembered("d", 1), remembered("e", 7)];
    let (lines, _) = state(&Entries::new(), &all, &[], &[], &[]);
    assert_eq!(lines, ["a x 10.1.0.3", "b x 10.1.0.2", "c x 10.1.0.4", "d x 10.1.0.5", "e x 10.1.0.6"]);
}

#[test]
fn waiting_attachments_keep_their_addresses_and_frozen_allocations_stay() {
    let all = ["a", "b"].map(|uid| {
        let mut wanted = AddressRequest { may_begin: false, ..wanted(uid, "x") };
        wanted.allocation.bridge = "br1".to_owned();
        wanted
    });
    let mut entries = pool(&["a", "z"]);
    entries.get_mut("z").expect("there")[0].pod_config_uid = "frozen".to_owned();
    assert_eq!(
        state(&entries, &all, &[], &[], &["z"]),
        (vec!["a x 10.1.0.2".to_owned(), "z x 10.1.0.3".to_owned()], Vec::new())
    );
}

#[test]
fn an_exhausted_range_leaves_attachments_without_an_address() {
    let all: Vec<AddressRequest> =
        ["a", "b", "c"].iter().flat_map(|uid| ["x", "y"].map(|name| wanted(uid, name))).collect();
    let (lines, without) = state(&Entries::new(), &all, &[], &[], &[]);
    assert_eq!((lines.len(), without), (5, vec![(5, Without::Exhausted)]));
}

#[test]
fn the_size_of_a_record_is_limited() {
    let long = |number: usize| {
        let mut wanted = wanted(&format!("{number:036}"), "x");
        let Allocation { pod, node, pod_config, .. } = &mut wanted.allocation;
        (*pod, *node, *pod_config) = ("p".repeat(253), "n".repeat(253), "c".repeat(253));
        wanted
    };
    let all: Vec<AddressRequest> = (0..LIMIT).map(long).collect();
    let none = BTreeSet::new();
    let next = next(&Input {
        range: Range::parse("10.0.0.0/16").expect("a range"),
        entries: &Entries::new(),
        wanted: &all,
        live: &[],
        busy: &none,
        is_frozen: &|_| false,
        is_gone: &|_, _| false,
    });
    let bytes: usize = next.entries.iter().map(|(uid, list)| uid.len() + text(list).len()).sum();
    assert!(bytes <= LIMIT_BYTES && bytes > LIMIT_BYTES / 10 * 9, "{bytes}");
    assert!(next.without.iter().all(|(_, why)| *why == Without::Full) && !next.without.is_empty());
}
