use proptest::prelude::*;

use super::*;

const AUTOMATIC: RangeInclusive<u16> = 49152..=65535;

fn pool(entries: &[&str]) -> Pool {
    Pool::parse(entries).expect("a pool").0
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
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

/// `address port port …` of a claim.
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
        brief(self.allocator.allocate(&key(name), requests, &self.pool, &AUTOMATIC).as_ref())
    }

    /// The store shows the allocation.
    fn arrive(&mut self, name: &str) {
        self.born += 1;
        let given = self.allocator.claim(&key(name)).expect("given").clone();
        let age = (self.born, format!("uid-{name}"));
        self.allocator.observe(&key(name), Some(Claim { age, ..given }));
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
    assert_eq!(case.allocate_and_show("b", &[tcp(0)]), "10.0.0.9 49153", "addresses are used again");
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
    assert_eq!(case.allocate_and_show("f", &[tcp(0)]), "10.0.0.9 49152", "the lowest that is free");
}

#[test]
fn specified_ports_go_before_automatic_ones() {
    let mut case = Case::new(&["10.0.0.1"]);
    assert_eq!(case.allocate_and_show("a", &[tcp(0), tcp(49152), tcp(0)]), "10.0.0.1 49153 49152 49154");
    // A new specified port that is the old automatic one of the same Service: the automatic one moves.
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
        "a newcomer takes none of them"
    );
    assert_eq!(case.allocate_and_show("c", &[tcp(22)]), "10.0.0.1 22");
    assert_eq!(
        case.allocate_and_show("b", &[tcp(22), kept(49153)]),
        "10.0.0.2 22 49152",
        "on another address they are new"
    );
    assert_eq!(
        case.allocate_and_show("b", &[Request::Automatic(Transport::Tcp, Some(80))]),
        "10.0.0.2 49152",
        "not automatic"
    );
}

#[test]
fn an_address_that_is_withdrawn_is_left_at_the_next_allocation() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    case.allocate_and_show("a", &[tcp(80)]);
    case.allocate_and_show("b", &[tcp(81)]);
    case.pool = pool(&["10.0.0.2", "10.0.0.3"]);
    // It is no candidate even while another Service still uses it.
    assert_eq!(case.allocate_and_show("a", &[tcp(80)]), "10.0.0.2 80");
    assert_eq!(case.allocate_and_show("b", &[tcp(81)]), "10.0.0.2 81");
}

#[test]
fn an_allocation_is_kept_before_the_store_shows_it() {
    let mut case = Case::new(&["10.0.0.1"]);
    assert_eq!(case.allocate("a", &[tcp(80)]), "10.0.0.1 80");
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("a", &[tcp(80)]), "10.0.0.1 80", "its own it may have again");
    // An older state of the Service arrives: the allocation is kept.
    let old = Claim {
        address: "10.0.0.1".parse().expect("an address"),
        ports: vec![(Transport::Tcp, 9)],
        age: (1, "u".into()),
    };
    case.allocator.observe(&key("a"), Some(old));
    assert_eq!(case.allocate("b", &[tcp(80)]), "none");
    assert_eq!(case.allocate("b", &[tcp(9)]), "none", "until the write arrives, the old ports are taken too");
    case.arrive("a");
    assert_eq!(case.allocate("b", &[tcp(9)]), "10.0.0.1 9");
    // A write that was refused.
    case.allocator.settle(&key("b"));
    assert_eq!(case.allocate("c", &[tcp(9)]), "10.0.0.1 9");
}

#[test]
fn the_younger_of_two_claims_moves() {
    let mut case = Case::new(&["10.0.0.1", "10.0.0.2"]);
    let claim = |born| Claim {
        address: "10.0.0.1".parse().expect("an address"),
        ports: vec![(Transport::Tcp, 80)],
        age: (born, format!("uid-{born}")),
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

/// What happens, in any order.
#[derive(Debug, Clone)]
enum Step {
    /// A Service requests ports.
    Ask(usize, Vec<(bool, Option<u16>)>),
    /// The store shows the last write of a Service.
    Arrive(usize),
    /// The store shows its deletion.
    End(usize),
    /// Another process takes over: allocations that were not written are lost.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let port =
        prop_oneof![3 => Just(None), 1 => (1_u16..4).prop_map(Some), 1 => (100_u16..104).prop_map(Some)];
    let component = prop_oneof![
        6 => (0_usize..8, proptest::collection::vec((any::<bool>(), port), 1..4)).prop_map(|(n, ports)| Step::Ask(n, ports)),
        5 => (0_usize..8).prop_map(Step::Arrive),
        2 => (0_usize..8).prop_map(Step::End),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(component, 1..60)
}

/// A cluster with a store that is late, and processes that die.
#[derive(Default)]
struct Model {
    allocator: Allocator,
    /// What was written, and not shown yet, and what is shown.
    written: BTreeMap<usize, Claim>,
    shown: BTreeMap<usize, Claim>,
    born: i64,
}

/// Four automatic ports.
const FEW: RangeInclusive<u16> = 100..=103;

fn name(number: usize) -> ObjectKey {
    key(&number.to_string())
}

impl Model {
    /// All claims that anybody could hold now.
    fn taken_by_others(&self, number: usize) -> BTreeSet<(IpAddr, Port)> {
        let claims = self.written.iter().chain(&self.shown).filter(|(other, _)| **other != number);
        claims.flat_map(|(_, claim)| claim.ports.iter().map(|port| (claim.address, *port))).collect()
    }

    fn ask(
        &mut self,
        number: usize,
        wanted: &[(bool, Option<u16>)],
        pool: &Pool,
    ) -> Result<(), TestCaseError> {
        let mut requests: Vec<Request> = Vec::new();
        for (is_tcp, port) in wanted {
            let transport = if *is_tcp { Transport::Tcp } else { Transport::Udp };
            let request = port
                .map_or(Request::Automatic(transport, None), |port| Request::Specified((transport, port)));
            // What a list with the same port twice means is said before it comes here.
            if matches!(request, Request::Automatic(..)) || !requests.contains(&request) {
                requests.push(request);
            }
        }
        let taken = self.taken_by_others(number);
        let before = self.allocator.claim(&name(number)).cloned();
        let claim = self.allocator.allocate(&name(number), &requests, pool, &FEW);
        let Some(claim) = claim else {
            // `None` only if no address has enough free ports.
            for address in pool.addresses() {
                prop_assert!(
                    !has_free_ports(&requests, address, &taken),
                    "{address} has free ports for {requests:?}"
                );
            }
            prop_assert_eq!(
                self.allocator.claim(&name(number)).cloned(),
                before,
                "nothing is lost by asking"
            );
            return Ok(());
        };
        prop_assert!(pool.contains(claim.address));
        prop_assert_eq!(claim.ports.len(), requests.len());
        let own: BTreeSet<Port> = claim.ports.iter().copied().collect();
        prop_assert_eq!(own.len(), claim.ports.len(), "no port twice");
        for (port, request) in claim.ports.iter().zip(&requests) {
            prop_assert!(!taken.contains(&(claim.address, *port)), "{port:?} is taken");
            match request {
                Request::Specified(wanted) => prop_assert_eq!(port, wanted),
                Request::Automatic(transport, _) => {
                    prop_assert_eq!(*transport, port.0);
                    prop_assert!(FEW.contains(&port.1));
                }
            }
        }
        self.written.insert(number, claim);
        Ok(())
    }

    fn arrive(&mut self, number: usize) {
        let Some(claim) = self.written.remove(&number) else { return };
        self.born += 1;
        let claim = Claim { age: (self.born, String::new()), ..claim };
        self.allocator.observe(&name(number), Some(claim.clone()));
        self.shown.insert(number, claim);
    }

    fn end(&mut self, number: usize) {
        // Deleted: neither shown nor on its way.
        self.shown.remove(&number);
        self.written.remove(&number);
        self.allocator.observe(&name(number), None);
        self.allocator.settle(&name(number));
    }

    fn restart(&mut self) {
        // A list shows everything that was written.
        self.written.keys().copied().collect::<Vec<_>>().into_iter().for_each(|number| self.arrive(number));
        self.allocator = Allocator::default();
        for (number, claim) in &self.shown {
            self.allocator.observe(&name(*number), Some(claim.clone()));
        }
    }
}

/// Whether an address has enough free ports for all requests, by counting.
fn has_free_ports(requests: &[Request], address: IpAddr, taken: &BTreeSet<(IpAddr, Port)>) -> bool {
    let mut specified = BTreeSet::new();
    for request in requests {
        if let Request::Specified(port) = request {
            if taken.contains(&(address, *port)) {
                return false;
            }
            specified.insert(*port);
        }
    }
    [Transport::Tcp, Transport::Udp].into_iter().all(|transport| {
        let wanted = requests
            .iter()
            .filter(|request| matches!(request, Request::Automatic(of, _) if *of == transport));
        let free = FEW.filter(|number| {
            let port = (transport, *number);
            !specified.contains(&port) && !taken.contains(&(address, port))
        });
        free.count() >= wanted.count()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// In any order of events, no port is allocated twice, and a request is refused only if no address has
    /// enough free ports.
    #[test]
    fn no_port_is_allocated_twice_and_no_request_is_refused_without_need(steps in steps()) {
        let pool = pool(&["10.0.0.1-10.0.0.2"]);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Ask(number, wanted) => model.ask(number, &wanted, &pool)?,
                Step::Arrive(number) => model.arrive(number),
                Step::End(number) => model.end(number),
                Step::Restart => model.restart(),
            }
            for number in model.shown.keys() {
                prop_assert!(!model.allocator.must_move(&name(*number)));
            }
        }
    }

    /// An allocation depends on the claims of the others, not on the order in which they were observed.
    #[test]
    fn the_order_of_observations_does_not_matter(
        claims in proptest::collection::btree_map((0_u8..3, any::<bool>(), 100_u16..104), 0_usize..6, 0..12),
        seed in any::<u64>(),
        wanted in proptest::collection::vec(any::<bool>(), 1..4),
    ) {
        // One claim for each holder and address.
        let mut by_holder: BTreeMap<(usize, u8), Vec<Port>> = BTreeMap::new();
        for ((address, is_tcp, port), holder) in claims {
            let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
            by_holder.entry((holder, address)).or_default().push((transport, port));
        }
        let all: Vec<(ObjectKey, Claim)> = by_holder
            .into_iter()
            .map(|((holder, address), ports)| {
                let claim = Claim { address: IpAddr::from([10, 0, 0, address]), ports, age: (1, String::new()) };
                (key(&format!("{holder}-{address}")), claim)
            })
            .collect();
        let requests: Vec<Request> = wanted.iter().map(|is_tcp| if *is_tcp { tcp(0) } else { udp(0) }).collect();
        let give = |all: &[(ObjectKey, Claim)]| {
            let mut allocator = Allocator::default();
            for (key, claim) in all {
                allocator.observe(key, Some(claim.clone()));
            }
            allocator.allocate(&key("me"), &requests, &pool(&["10.0.0.0-10.0.0.2"]), &FEW)
        };
        let mut shuffled = all.clone();
        let length = shuffled.len();
        for place in 1..length {
            let other = usize::try_from(seed.rotate_left(u32::try_from(place).unwrap_or(0))).unwrap_or(0) % (place + 1);
            shuffled.swap(place, other);
        }
        prop_assert_eq!(give(&all), give(&shuffled));
    }
}
