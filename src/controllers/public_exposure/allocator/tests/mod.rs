mod model;
mod random;

use super::*;

const AUTOMATIC: RangeInclusive<u16> = 49152..=65535;

fn pool(entries: &[&str]) -> Pool {
    Pool::parse(entries).expect("a pool").0
}

/// The key of a Service.
fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", format!("{name}-pe"))
}

/// The key of its Instance.
fn instance(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

/// A Service with this creation time.
fn created(time: i64) -> Basis {
    Basis::Service { created: time, uid: format!("uid-{time}") }
}

fn tcp(port: u16) -> Request {
    if port == 0 {
        Request::Automatic(Transport::Tcp, None)
    } else {
        Request::Specified((Transport::Tcp, port))
    }
}

fn udp(port: u16) -> Request {
    if port == 0 {
        Request::Automatic(Transport::Udp, None)
    } else {
        Request::Specified((Transport::Udp, port))
    }
}

/// Formats a claim as `address port port …`.
fn brief(claim: Option<&Claim>) -> String {
    let Some(claim) = claim else { return "none".to_owned() };
    let ports = claim.ports.iter().map(|(transport, port)| match transport {
        Transport::Tcp => format!(" {port}"),
        Transport::Udp => format!(" {port}u"),
    });
    format!("{}{}", claim.address, ports.collect::<String>())
}

struct Case {
    allocator: Allocator,
    pool: Pool,
    born: i64,
}

impl Case {
    fn new(entries: &[&str]) -> Self {
        Self { allocator: Allocator::default(), pool: pool(entries), born: 0 }
    }

    fn allocate(&mut self, name: &str, requests: &[Request]) -> String {
        let (service, instance) = (key(name), instance(name));
        brief(self.allocator.allocate(&service, &instance, requests, &self.pool, &AUTOMATIC).as_ref())
    }

    /// The store shows the allocation.
    fn arrive(&mut self, name: &str) {
        self.born += 1;
        let given = self.allocator.claim(&key(name)).expect("given").clone();
        self.allocator.observe(&key(name), Some(Claim { basis: created(self.born), ..given }));
    }

    fn allocate_and_show(&mut self, name: &str, requests: &[Request]) -> String {
        let claim = self.allocate(name, requests);
        self.arrive(name);
        claim
    }
}

#[test]
fn the_first_address_with_enough_free_ports_is_taken() {
    let mut case = Case::new(&["10.0.0.10", "10.0.0.9"]);
    assert_eq!(case.allocate_and_show("a", &[tcp(80), tcp(0)]), "10.0.0.9 80 49152");
    assert_eq!(case.allocate_and_show("b", &[tcp(0)]), "10.0.0.9 49153", "addresses are shared");
    assert_eq!(
        case.allocate_and_show("c", &[tcp(0), tcp(80)]),
        "10.0.0.10 49152 80",
        "80 is taken on the first"
    );
    assert_eq!(
        case.allocate_and_show("d", &[udp(80), udp(0)]),
        "10.0.0.9 80u 49152u",
        "other protocols do not count"
    );
    assert_eq!(case.allocate("e", &[tcp(80)]), "none");
    case.allocator.observe(&key("a"), None);
    assert_eq!(case.allocate_and_show("e", &[tcp(80)]), "10.0.0.9 80", "once it is free");
    assert_eq!(case.allocate_and_show("f", &[tcp(0)]), "10.0.0.9 49152", "the lowest free port");
}

#[test]
fn specified_ports_go_before_automatic_ones() {
    let mut case = Case::new(&["10.0.0.1"]);
    assert_eq!(case.allocate_and_show("a", &[tcp(0), tcp(49152), tcp(0)]), "10.0.0.1 49153 49152 49154");
    // The new specified port is the former automatic port of the same Service, so the automatic port moves.
    let again =
        [Request::Specified((Transport::Tcp, 49153)), Request::Automatic(Transport::Tcp, Some(49153))];
    assert_eq!(case.allocate_and_show("a", &again), "10.0.0.1 49153 49152");
}

#[test]
fn automatic_ports_stay_where_they_were() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    case.allocate_and_show("a", &[tcp(0)]);
    assert_eq!(case.allocate_and_show("b", &[tcp(0)]), "10.0.0.1 49153");
    case.allocator.observe(&key("a"), None);
    let kept = |port| Request::Automatic(Transport::Tcp, Some(port));
    assert_eq!(case.allocate_and_show("b", &[kept(49153), tcp(22)]), "10.0.0.1 49153 22");
    assert_eq!(
        case.allocate_and_show("b", &[tcp(0), kept(49153)]),
        "10.0.0.1 49152 49153",
        "a new port does not take it"
    );
    assert_eq!(case.allocate_and_show("c", &[tcp(22)]), "10.0.0.1 22");
    assert_eq!(
        case.allocate_and_show("b", &[tcp(22), kept(49153)]),
        "10.0.0.2 22 49152",
        "on another address they are new"
    );
    assert_eq!(
        case.allocate_and_show("b", &[kept(80), tcp(0)]),
        "10.0.0.2 80 49152",
        "a port outside of the range stays, too"
    );
    case.allocate_and_show("d", &[tcp(81)]);
    assert_eq!(case.allocate("b", &[kept(81)]), "10.0.0.2 81", "d has it on another address");
    assert_eq!(
        case.allocate("b", &[tcp(81), kept(81)]),
        "10.0.0.2 81 49152",
        "it is requested for another port"
    );
}

#[test]
fn an_address_removed_from_the_pool_is_kept_until_the_service_is_deleted() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    case.allocate_and_show("a", &[tcp(80)]);
    case.allocate_and_show("b", &[tcp(81)]);
    case.pool = pool(&["10.0.0.2", "10.0.0.3"]);
    assert_eq!(case.allocate_and_show("a", &[tcp(80)]), "10.0.0.1 80");
    // It is not available to others, although a Service still uses it.
    assert_eq!(case.allocate_and_show("c", &[tcp(82)]), "10.0.0.2 82");
    // A Service that is deleted and created again gets an address of the pool.
    case.allocator.observe(&key("b"), None);
    assert_eq!(case.allocate_and_show("b", &[tcp(81)]), "10.0.0.2 81");
}

#[test]
fn an_allocation_is_kept_before_the_store_shows_it() {
    let mut case = Case::new(&["10.0.0.1"]);
    assert_eq!(case.allocate("a", &[tcp(80)]), "10.0.0.1 80");
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("a", &[tcp(80)]), "10.0.0.1 80", "it may get its own port again");
    // An older state of the Service arrives, and the allocation is kept.
    let old = Claim {
        address: "10.0.0.1".parse().expect("an address"),
        ports: vec![(Transport::Tcp, 9)],
        basis: created(1),
    };
    case.allocator.observe(&key("a"), Some(old));
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("b", &[tcp(9)]), "none", "until the write arrives, the old ports are taken too");
    case.arrive("a");
    assert_eq!(case.allocate("b", &[tcp(9)]), "10.0.0.1 9");
    // A rejected write.
    case.allocator.refuse(&key("b"), &instance("b"));
    assert_eq!(case.allocate("c", &[tcp(9)]), "10.0.0.1 9");
}

#[test]
fn after_writes_without_a_response_all_allocations_are_kept() {
    let mut case = Case::new(&["10.0.0.1"]);
    case.allocate("a", &[tcp(80), tcp(0)]);
    case.allocator.await_outcome(&key("a"), &instance("a"));
    case.allocate("a", &[tcp(81), tcp(0)]);
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("b", &[tcp(81)]), "none");
    // The second write is rejected. The first one may still have taken effect.
    case.allocator.refuse(&key("a"), &instance("a"));
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("b", &[tcp(49152)]), "none");
    assert_eq!(case.allocate("b", &[tcp(81)]), "10.0.0.1 81");
    // An equal allocation is rejected. The earlier write may still have taken effect.
    case.allocate("a", &[tcp(80), tcp(0)]);
    case.allocator.refuse(&key("a"), &instance("a"));
    assert_eq!(case.allocate("c", &[tcp(80)]), "none");
    // The third one is shown, so the first one took effect before it, or never will.
    case.allocate_and_show("a", &[tcp(82)]);
    assert_eq!(case.allocate("c", &[tcp(80), tcp(49152)]), "10.0.0.1 80 49152");
}

#[test]
fn the_younger_of_two_claims_moves() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    let claim = |born| Claim {
        address: "10.0.0.1".parse().expect("an address"),
        ports: vec![(Transport::Tcp, 80)],
        basis: created(born),
    };
    case.allocator.observe(&key("young"), Some(claim(2)));
    case.allocator.observe(&key("old"), Some(claim(1)));
    assert!(case.allocator.must_move(&key("young")));
    assert!(!case.allocator.must_move(&key("old")));
    assert!(!case.allocator.must_move(&key("nobody")));
    assert_eq!(case.allocator.rivals(&key("old")).into_iter().collect::<Vec<_>>(), [key("young")]);
    assert_eq!(case.allocate_and_show("young", &[tcp(80)]), "10.0.0.2 80");
    assert!(!case.allocator.must_move(&key("young")));
    assert!(case.allocator.rivals(&key("old")).is_empty());
}

#[test]
fn an_empty_pool_allocates_nothing() {
    let mut case = Case::new(&[]);
    assert_eq!(case.allocate("a", &[tcp(0)]), "none");
}

/// The address and ports in a status.
fn said(address: &str, ports: &[u16]) -> (IpAddr, Vec<Port>) {
    let ports = ports.iter().map(|port| (Transport::Tcp, *port)).collect();
    (address.parse().expect("an address"), ports)
}

#[test]
fn the_ports_in_a_status_are_reserved_for_its_instance() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    let remember =
        |case: &mut Case, name: &str, said| case.allocator.remember(&instance(name), &key(name), said);
    assert!(!remember(&mut case, "a", Some(said("10.0.0.2", &[80, 49160]))), "nothing is freed");
    assert_eq!(case.allocate("b", &[tcp(80)]), "10.0.0.1 80", "other Instances do not get them");
    assert_eq!(case.allocate("c", &[Request::Automatic(Transport::Tcp, Some(49160))]), "10.0.0.1 49152");
    let kept = Request::Automatic(Transport::Tcp, Some(49160));
    assert_eq!(case.allocate("a", &[tcp(80), kept]), "10.0.0.2 80 49160", "its own Service does");
    // A Service takes precedence over a status.
    let claim = |born| Claim {
        address: "10.0.0.2".parse().expect("an address"),
        ports: vec![(Transport::Tcp, 90)],
        basis: created(born),
    };
    remember(&mut case, "d", Some(said("10.0.0.2", &[90])));
    case.allocator.observe(&key("e"), Some(claim(5)));
    assert!(!case.allocator.must_move(&key("e")));
    assert_eq!(case.allocate("d", &[tcp(90)]), "10.0.0.1 90");
    // Of two contradictory statuses, the first one wins.
    let mut case = Case::new(&["10.0.0.1"]);
    remember(&mut case, "a", Some(said("10.0.0.1", &[80])));
    remember(&mut case, "b", Some(said("10.0.0.1", &[80])));
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("c", &[tcp(80)]), "none");
    assert_eq!(case.allocate("a", &[tcp(80)]), "10.0.0.1 80");
    // Unused ports are free.
    case.allocator.settle(&key("a"), &instance("a"));
    assert!(remember(&mut case, "a", None) && remember(&mut case, "b", Some(said("10.0.0.1", &[81]))));
    assert!(!remember(&mut case, "b", Some(said("10.0.0.1", &[81]))), "the same as before");
    assert_eq!(case.allocate("c", &[tcp(80)]), "10.0.0.1 80");
}

/// The Services of `a.b` and `a-b` have the same name.
#[test]
fn an_allocation_is_settled_for_its_instance_only() {
    let mut case = Case::new(&["10.0.0.1"]);
    case.allocate("a-b", &[tcp(80)]);
    assert!(case.allocator.is_unanswered(&key("a-b"), &instance("a-b")));
    assert!(!case.allocator.is_unanswered(&key("a-b"), &instance("a.b")));
    case.allocator.settle(&key("a-b"), &instance("a.b"));
    assert_eq!(case.allocate("c", &[tcp(80)]), "none", "the allocation for a-b stays");
    case.allocator.settle(&key("a-b"), &instance("a-b"));
    assert_eq!(case.allocate("c", &[tcp(80)]), "10.0.0.1 80");
}

/// The Services of `a.b` and `a-b` have the same name.
#[test]
fn an_allocation_replaces_only_an_earlier_one_of_the_same_instance() {
    let mut case = Case::new(&["10.0.0.1"]);
    let (service, ports) = (key("a-b"), [tcp(80)]);
    let of = |case: &mut Case, name: &str| {
        brief(case.allocator.allocate(&service, &instance(name), &ports, &case.pool, &AUTOMATIC).as_ref())
    };
    assert_eq!(of(&mut case, "a.b"), "10.0.0.1 80");
    case.allocator.await_outcome(&service, &instance("a.b"));
    assert_eq!(of(&mut case, "a-b"), "10.0.0.1 80");
    for name in ["a.b", "a-b"] {
        assert!(case.allocator.is_unanswered(&service, &instance(name)), "{name}");
    }
    // The written one may have taken effect, even if the next write of the same allocation is rejected.
    assert_eq!(of(&mut case, "a.b"), "10.0.0.1 80");
    case.allocator.refuse(&service, &instance("a.b"));
    assert!(case.allocator.is_unanswered(&service, &instance("a.b")));
    case.allocator.settle(&service, &instance("a.b"));
    assert!(!case.allocator.is_unanswered(&service, &instance("a.b")));
}
