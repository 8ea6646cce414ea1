//! Properties of the allocator, in random sequences of events.

use proptest::prelude::*;

use super::model::{FEW, Fate, Model, places, service, steps, wanted};
use super::*;

/// Checks that a claim fulfils the requests with free ports of the pool.
pub fn check_claim(
    claim: &Claim,
    requests: &[Request],
    taken: &BTreeSet<(IpAddr, Port)>,
    pool: &Pool,
) -> Result<(), TestCaseError> {
    prop_assert!(pool.contains(claim.address));
    prop_assert_eq!(claim.ports.len(), requests.len());
    let own: BTreeSet<Port> = claim.ports.iter().copied().collect();
    prop_assert_eq!(own.len(), claim.ports.len(), "no port twice");
    for (port, request) in claim.ports.iter().zip(requests) {
        prop_assert!(!taken.contains(&(claim.address, *port)), "{port:?} is taken");
        match request {
            Request::Specified(wanted) => prop_assert_eq!(port, wanted),
            Request::Automatic(transport, before) => {
                prop_assert_eq!(*transport, port.0);
                prop_assert!(FEW.contains(&port.1) || *before == Some(port.1));
            }
        }
    }
    Ok(())
}

/// Checks that automatic ports stay the same on the same address, unless another Service has them or requests their
/// number.
pub fn check_sticky(
    claim: &Claim,
    requests: &[Request],
    taken: &BTreeSet<(IpAddr, Port)>,
) -> Result<(), TestCaseError> {
    for (port, request) in claim.ports.iter().zip(requests) {
        let Request::Automatic(transport, Some(before)) = *request else { continue };
        let before = (transport, before);
        let is_free = is_kept(before, requests, claim.address, taken);
        prop_assert!(!is_free || *port == before, "{before:?} changed to {port:?}");
    }
    Ok(())
}

/// Whether an automatic port can keep its number on the same address.
fn is_kept(before: Port, requests: &[Request], address: IpAddr, taken: &BTreeSet<(IpAddr, Port)>) -> bool {
    !taken.contains(&(address, before)) && !requests.contains(&Request::Specified(before))
}

/// The requests that need a port of the range on the current address of a Service: all except automatic ports that keep
/// a number outside of the range.
pub fn without_kept(requests: &[Request], current: IpAddr, taken: &BTreeSet<(IpAddr, Port)>) -> Vec<Request> {
    let stays_outside = |request: &Request| match *request {
        Request::Automatic(transport, Some(before)) => {
            !FEW.contains(&before) && is_kept((transport, before), requests, current, taken)
        }
        _ => false,
    };
    requests.iter().copied().filter(|request| !stays_outside(request)).collect()
}

/// Whether an address has enough free ports for all requests, found by counting.
pub fn has_free_ports(requests: &[Request], address: IpAddr, taken: &BTreeSet<(IpAddr, Port)>) -> bool {
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

/// Ports of one of three addresses.
fn claims() -> impl Strategy<Value = (IpAddr, BTreeSet<Port>)> {
    let transport = prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)];
    (0_u8..3, proptest::collection::btree_set((transport, 100_u16..104), 1..4))
        .prop_map(|(address, ports)| (IpAddr::from([10, 0, 0, address]), ports))
}

/// The states of each Service in order, with the last one at the end, and an order of observation.
type History = (Vec<Vec<Option<(IpAddr, BTreeSet<Port>)>>>, Vec<usize>);

/// Two or three states of each of six Services, in any order that preserves the order of each Service's states.
fn histories() -> impl Strategy<Value = History> {
    let state = prop_oneof![4 => claims().prop_map(Some), 1 => Just(None)];
    let states = proptest::collection::vec(proptest::collection::vec(state, 1..4), 6);
    states.prop_flat_map(|states| {
        let turns = states.iter().enumerate().flat_map(|(of, states)| vec![of; states.len()]);
        let turns = Just(turns.collect::<Vec<usize>>()).prop_shuffle();
        (Just(states), turns)
    })
}

/// The claim of a Service in this state. The Services with the numbers 0 and 1 were created in the same second.
fn claim_of(number: usize, (address, ports): &(IpAddr, BTreeSet<Port>)) -> Claim {
    let basis =
        Basis::Service { created: i64::try_from(number.max(1)).expect("few"), uid: format!("uid-{number}") };
    Claim { address: *address, ports: ports.iter().copied().collect(), basis }
}

proptest! {
    #![proptest_config(crate::properties::cases(800))]

    /// Provided that the writes of a leader end before the next leader reads the Services, the following holds for any
    /// order of events. No two Services share a port, no Service must move, automatic ports stay the same, and a
    /// request fails only if no address has enough free ports.
    #[test]
    fn no_port_is_allocated_twice_and_no_request_is_refused_without_need(steps in steps(8)) {
        let mut model = Model::new(&["10.0.0.1-10.0.0.2"]);
        for step in steps {
            model.step(step)?;
            prop_assert_eq!(model.duplicates(), BTreeSet::new());
            prop_assert_eq!(model.must_move(), Vec::<usize>::new());
        }
    }

    /// If a write of the former leader takes effect after that, the younger Service moves, and no other.
    #[test]
    fn after_a_late_write_the_younger_moves(
        steps in steps(6),
        after in proptest::collection::vec((6_usize..9, wanted()), 1..4),
    ) {
        let mut model = Model::new(&["10.0.0.1-10.0.0.12"]);
        for step in steps {
            model.step(step)?;
        }
        model.take_over();
        for (number, wanted) in after {
            model.ask(number, &wanted, Fate::Answered)?;
        }
        while !model.late.is_empty() {
            model.land();
        }
        while !model.events.is_empty() {
            model.show();
        }
        let before = model.actual.clone();
        let must_move = model.must_move();
        for (one, other) in model.duplicates() {
            let younger = [one, other].into_iter().max_by_key(|of| before[of].claim.basis.clone());
            prop_assert!(must_move.contains(&younger.expect("one of two")));
        }
        for number in &must_move {
            let wanted = before[number].wanted.clone();
            prop_assert!(model.ask(*number, &wanted, Fate::Answered)?.is_some());
        }
        prop_assert_eq!((model.duplicates(), model.must_move()), (BTreeSet::new(), Vec::new()));
        for (number, written) in before.iter().filter(|(number, _)| !must_move.contains(number)) {
            prop_assert_eq!(&model.actual[number], written, "{} has not moved", number);
        }
    }

    /// The allocations and the Services that must move depend only on the last state of each Service, not on the order
    /// of observation.
    #[test]
    fn the_order_of_observations_does_not_matter((states, turns) in histories(), wanted in wanted()) {
        let mut allocator = Allocator::default();
        let mut next = [0; 6];
        for of in turns {
            let claim = states[of][next[of]].as_ref().map(|state| claim_of(of, state));
            next[of] += 1;
            allocator.observe(&service(of), claim);
        }
        let last = |of: usize| Some(claim_of(of, states[of].last()?.as_ref()?));
        let mut taken = BTreeSet::new();
        for of in 0..states.len() {
            let own: BTreeSet<_> = last(of).iter().flat_map(places).collect();
            let shared = |other: &usize| *other != of && last(*other).iter().flat_map(places).any(|at| own.contains(&at));
            let rivals: BTreeSet<usize> = (0..states.len()).filter(shared).collect();
            let older = rivals.iter().any(|rival| last(*rival).map(|claim| claim.basis) < last(of).map(|claim| claim.basis));
            prop_assert_eq!(allocator.must_move(&service(of)), older, "{}", of);
            prop_assert_eq!(allocator.rivals(&service(of)), rivals.into_iter().map(service).collect());
            taken.extend(own);
        }
        let requests: Vec<Request> = wanted
            .values()
            .map(|(transport, port)| port.map_or(Request::Automatic(*transport, None), |port| Request::Specified((*transport, port))))
            .collect();
        let pool = pool(&["10.0.0.0-10.0.0.3"]);
        let addresses: Vec<IpAddr> = pool.addresses().collect();
        // Addresses in use come first.
        let is_unused = |address: &IpAddr| !taken.iter().any(|(used, _)| used == address);
        let mut expected = addresses.into_iter().filter(|address| has_free_ports(&requests, *address, &taken)).collect::<Vec<_>>();
        expected.sort_by_key(|address| (is_unused(address), *address));
        let claim = allocator.allocate(&service(9), &instance("9"), &requests, &pool, &FEW);
        prop_assert_eq!(claim.as_ref().map(|claim| claim.address), expected.first().copied());
        if let Some(claim) = claim {
            check_claim(&claim, &requests, &taken, &pool)?;
            let fresh = allocator.allocate(&service(9), &instance("9"), &requests, &pool, &FEW);
            prop_assert_eq!(fresh.as_ref(), Some(&claim), "the same again");
        }
    }
}
