//! A cluster with a stale watch, writes without a response, and processes that die.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::random::{check_claim, check_sticky, has_free_ports, without_kept};
use super::*;

/// Four automatic ports.
pub const FEW: RangeInclusive<u16> = 100..=103;

/// The request of a Service, by the name of the port: its protocol, and its number if specified.
pub type Wanted = BTreeMap<u8, (Transport, Option<u16>)>;

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It takes effect, and the response arrives.
    Answered,
    /// It takes effect, and the response is lost.
    Lost,
    /// It is rejected.
    Refused,
    /// It never arrives, but the client does not know that.
    Broken,
    /// It arrives later.
    Late,
}

/// An event. Events occur in any order.
#[derive(Debug, Clone)]
pub enum Step {
    /// A Service requests ports.
    Ask(usize, Wanted, Fate),
    /// The oldest delayed write takes effect.
    Land,
    /// The watch shows the next change.
    Show,
    /// A Service is deleted.
    End(usize),
    /// Another process takes over, and reads all Services.
    Restart,
}

pub fn wanted() -> impl Strategy<Value = Wanted> {
    let number =
        prop_oneof![3 => Just(None), 1 => (1_u16..4).prop_map(Some), 1 => (100_u16..104).prop_map(Some)];
    let transport = prop_oneof![2 => Just(Transport::Tcp), 1 => Just(Transport::Udp)];
    let wanted = proptest::collection::btree_map(0_u8..4, (transport, number), 1..4);
    // The validation rejects a list with the same port twice earlier.
    wanted.prop_map(|mut wanted| {
        let mut specified = BTreeSet::new();
        wanted.retain(|_, port| port.1.is_none() || specified.insert(*port));
        wanted
    })
}

pub fn steps(services: usize) -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        4 => Just(Fate::Answered), 1 => Just(Fate::Lost), 1 => Just(Fate::Refused), 1 => Just(Fate::Broken),
        1 => Just(Fate::Late),
    ];
    let step = prop_oneof![
        8 => (0..services, wanted(), fate).prop_map(|(n, wanted, fate)| Step::Ask(n, wanted, fate)),
        2 => Just(Step::Land),
        5 => Just(Step::Show),
        2 => (0..services).prop_map(Step::End),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A Service in the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub claim: Claim,
    pub wanted: Wanted,
}

impl Written {
    /// The number of the port with this name and protocol.
    fn port(&self, name: u8, transport: Transport) -> Option<u16> {
        let mut ports = self.wanted.keys().zip(&self.claim.ports);
        let (_, port) = ports.find(|(known, port)| (**known, port.0) == (name, transport))?;
        Some(port.1)
    }
}

/// The cluster, and the leading process.
pub struct Model {
    allocator: Allocator,
    pool: Pool,
    /// Counts the changes.
    version: i64,
    /// The state of the API server.
    pub actual: BTreeMap<usize, Written>,
    /// The state of the store, each entry with its version; `None` for deleted Services.
    shown: BTreeMap<usize, (i64, Option<Written>)>,
    /// Changes that the watch has not shown yet.
    pub events: VecDeque<(usize, i64, Option<Written>)>,
    /// The version of the last change of each Service.
    versions: BTreeMap<usize, i64>,
    /// Delayed writes, each with the version that it is valid for; `None` for a creation.
    pub late: VecDeque<(usize, Option<i64>, Written)>,
    /// Allocations that are not in the store, in order, each with whether it may have been written.
    pending: BTreeMap<usize, Vec<(Claim, bool)>>,
}

pub fn service(number: usize) -> ObjectKey {
    key(&number.to_string())
}

pub fn places(claim: &Claim) -> impl Iterator<Item = (IpAddr, Port)> {
    claim.ports.iter().map(|port| (claim.address, *port))
}

impl Model {
    pub fn new(entries: &[&str]) -> Self {
        Self {
            allocator: Allocator::default(),
            pool: pool(entries),
            version: 0,
            actual: BTreeMap::new(),
            shown: BTreeMap::new(),
            events: VecDeque::new(),
            versions: BTreeMap::new(),
            late: VecDeque::new(),
            pending: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Ask(number, wanted, fate) => drop(self.ask(number, &wanted, fate)?),
            Step::Land => self.land(),
            Step::Show => self.show(),
            Step::End(number) => self.end(number),
            Step::Restart => self.restart(),
        }
        Ok(())
    }

    /// The requests for the ports of a Service, as the loop makes them.
    fn requests(&self, number: usize, wanted: &Wanted) -> Vec<Request> {
        let before = self.shown.get(&number).and_then(|(_, written)| written.as_ref());
        let request = |(name, (transport, port)): (&u8, &(Transport, Option<u16>))| match port {
            Some(port) => Request::Specified((*transport, *port)),
            None => Request::Automatic(*transport, before.and_then(|before| before.port(*name, *transport))),
        };
        wanted.iter().map(request).collect()
    }

    /// The ports of other Services, as far as the process can know.
    fn taken(&self, number: usize) -> BTreeSet<(IpAddr, Port)> {
        let shown = self.shown.iter().filter_map(|(of, (_, written))| Some((of, &written.as_ref()?.claim)));
        let pending =
            self.pending.iter().flat_map(|(of, claims)| claims.iter().map(move |(claim, _)| (of, claim)));
        let claims = shown.chain(pending).filter(|(of, _)| **of != number);
        claims.flat_map(|(_, claim)| places(claim)).collect()
    }

    /// Requests ports for a Service, and returns the result.
    pub fn ask(
        &mut self,
        number: usize,
        wanted: &Wanted,
        fate: Fate,
    ) -> Result<Option<Claim>, TestCaseError> {
        if self.pending.contains_key(&number) {
            self.read(number);
        }
        let (requests, taken) = (self.requests(number, wanted), self.taken(number));
        let before = self.allocator.claim(&service(number)).cloned();
        let of = instance(&number.to_string());
        let claim = self.allocator.allocate(&service(number), &of, &requests, &self.pool, &FEW);
        let current = before.as_ref().map(|claim| claim.address);
        let current = current.filter(|address| self.pool.contains(*address));
        let Some(claim) = claim else {
            for address in self.pool.addresses() {
                let is_free = has_free_ports(&requests, address, &taken);
                prop_assert!(!is_free, "{address} has free ports for {requests:?}");
            }
            let now = self.allocator.claim(&service(number)).cloned();
            prop_assert_eq!(now, before, "nothing is lost by asking");
            return Ok(None);
        };
        check_claim(&claim, &requests, &taken, &self.pool)?;
        if let Some(current) = current {
            let stays = has_free_ports(&without_kept(&requests, current, &taken), current, &taken);
            prop_assert_eq!(claim.address == current, stays, "it leaves its address only if necessary");
            if stays {
                check_sticky(&claim, &requests, &taken)?;
            }
        }
        self.pending.entry(number).or_default().push((claim.clone(), fate != Fate::Refused));
        self.send(number, Written { claim: claim.clone(), wanted: wanted.clone() }, fate);
        Ok(Some(claim))
    }

    /// Reads the Service from the API server, as after a write without a response.
    fn read(&mut self, number: usize) {
        if let Some(written) = self.actual.get(&number).cloned() {
            self.learn(number, self.versions[&number], Some(written));
        }
    }

    /// Sends a write.
    fn send(&mut self, number: usize, written: Written, fate: Fate) {
        if matches!(fate, Fate::Lost | Fate::Broken | Fate::Late) {
            self.allocator.await_outcome(&service(number), &instance(&number.to_string()));
        }
        match fate {
            Fate::Answered => {
                self.write(number, Some(written));
                let (number, version, written) = self.events.back().cloned().expect("the write");
                self.learn(number, version, written);
            }
            Fate::Lost => self.write(number, Some(written)),
            Fate::Refused => {
                self.allocator.refuse(&service(number), &instance(&number.to_string()));
                let mut pending = self.pending.remove(&number).expect("this one");
                pending.retain(|(_, is_written)| *is_written);
                if !pending.is_empty() {
                    self.pending.insert(number, pending);
                }
            }
            Fate::Broken => {}
            Fate::Late => {
                let based_on = self.actual.get(&number).map(|_| self.versions[&number]);
                self.late.push_back((number, based_on, written));
            }
        }
    }

    /// The API server executes a write.
    fn write(&mut self, number: usize, written: Option<Written>) {
        self.version += 1;
        let created =
            self.actual.get(&number).map_or_else(|| created(self.version), |old| old.claim.basis.clone());
        let written = written
            .map(|Written { claim, wanted }| Written { claim: Claim { basis: created, ..claim }, wanted });
        match &written {
            Some(written) => drop(self.actual.insert(number, written.clone())),
            None => drop(self.actual.remove(&number)),
        }
        self.versions.insert(number, self.version);
        self.events.push_back((number, self.version, written));
    }

    /// The store receives a change, unless it already has a later one.
    fn learn(&mut self, number: usize, version: i64, written: Option<Written>) {
        if self.shown.get(&number).is_some_and(|(known, _)| *known >= version) {
            return;
        }
        let claim = written.as_ref().map(|written| written.claim.clone());
        let mut pending = self.pending.remove(&number).unwrap_or_default();
        let is_shown =
            |(pending, _): &(Claim, bool)| claim.as_ref().is_some_and(|claim| claim.is_same(pending));
        if let Some(at) = pending.iter().rposition(is_shown) {
            pending.drain(..=at);
        }
        if !pending.is_empty() {
            self.pending.insert(number, pending);
        }
        self.allocator.observe(&service(number), claim);
        self.shown.insert(number, (version, written));
    }

    pub fn land(&mut self) {
        let Some((number, based_on, written)) = self.late.pop_front() else { return };
        if based_on == self.actual.get(&number).map(|_| self.versions[&number]) {
            self.write(number, Some(written));
        }
    }

    pub fn show(&mut self) {
        if let Some((number, version, written)) = self.events.pop_front() {
            self.learn(number, version, written);
        }
    }

    /// A Service is deleted, and the response arrives.
    fn end(&mut self, number: usize) {
        // Its Instance is deleted, too, so its delayed writes do not take effect.
        self.late.retain(|(of, ..)| *of != number);
        self.write(number, None);
        self.learn(number, self.version, None);
        self.pending.remove(&number);
        self.allocator.settle(&service(number), &instance(&number.to_string()));
    }

    /// The writes of the dead process took effect before its lease expired.
    fn restart(&mut self) {
        while !self.late.is_empty() {
            self.land();
        }
        self.take_over();
    }

    /// A new process reads all Services. The watch shows earlier changes later.
    pub fn take_over(&mut self) {
        self.allocator = Allocator::default();
        self.pending.clear();
        for (number, (version, written)) in &mut self.shown {
            (*version, *written) = (self.version, self.actual.get(number).cloned());
        }
        for (number, written) in &self.actual {
            self.allocator.observe(&service(*number), Some(written.claim.clone()));
            self.shown.insert(*number, (self.version, Some(written.clone())));
        }
    }

    /// Services with the same port at the same address.
    pub fn duplicates(&self) -> BTreeSet<(usize, usize)> {
        let mut holders: BTreeMap<(IpAddr, Port), usize> = BTreeMap::new();
        let all = self.actual.iter().flat_map(|(of, written)| places(&written.claim).map(|at| (at, *of)));
        all.filter_map(|(at, of)| holders.insert(at, of).map(|other| (other, of))).collect()
    }

    pub fn must_move(&self) -> Vec<usize> {
        self.actual.keys().copied().filter(|of| self.allocator.must_move(&service(*of))).collect()
    }
}
