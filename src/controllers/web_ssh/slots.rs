//! The slots of browsers. A browser waits until its user is known, and waiting browsers take no slot from open
//! terminals: they displace each other, the oldest first.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The slots of one replica.
pub struct Slots {
    /// The maximum number of open terminals, and of waiting browsers from one address. Twice as many may wait from all
    /// addresses together.
    most: usize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    next: u64,
    /// In the order of arrival.
    taken: BTreeMap<u64, Occupant>,
}

struct Occupant {
    peer: IpAddr,
    /// The user of the terminal; `None` while the browser waits.
    user: Option<Arc<str>>,
    /// Notified when another browser needs the slot.
    end: Arc<Notify>,
}

/// The error when all terminals are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Slots {
    /// Slots for this many terminals.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, all: Mutex::default() })
    }

    /// A slot for a waiting browser at this address. If too many are waiting, the oldest one loses its slot: the oldest
    /// from this address if the address has reached its limit, otherwise the oldest of all.
    pub fn wait(self: &Arc<Self>, peer: IpAddr) -> Slot {
        let end = Arc::new(Notify::new());
        let mut all = self.all.lock();
        if all.waiting(Some(peer)).count() >= self.most {
            all.end_oldest(|taken| taken.user.is_none() && taken.peer == peer);
        } else if all.waiting(None).count() >= 2 * self.most {
            all.end_oldest(|taken| taken.user.is_none());
        }
        let number = all.next;
        all.next += 1;
        all.taken.insert(number, Occupant { peer, user: None, end: Arc::clone(&end) });
        Slot { slots: Arc::clone(self), number, end }
    }
}

impl All {
    fn waiting(&self, peer: Option<IpAddr>) -> impl Iterator<Item = &Occupant> {
        self.taken
            .values()
            .filter(move |taken| taken.user.is_none() && peer.is_none_or(|peer| peer == taken.peer))
    }

    /// Takes the slot of the oldest matching occupant.
    fn end_oldest(&mut self, is_meant: impl Fn(&Occupant) -> bool) {
        let oldest = self.taken.iter().find(|(_, taken)| is_meant(taken)).map(|(number, _)| *number);
        if let Some(taken) = oldest.and_then(|number| self.taken.remove(&number)) {
            taken.end.notify_one();
        }
    }

    /// The number of terminals of each user.
    fn users(&self) -> HashMap<Arc<str>, usize> {
        let mut users = HashMap::new();
        for user in self.taken.values().filter_map(|taken| taken.user.clone()) {
            *users.entry(user).or_default() += 1;
        }
        users
    }
}

/// The slot of one browser. It is released when it is dropped.
pub struct Slot {
    slots: Arc<Slots>,
    number: u64,
    end: Arc<Notify>,
}

impl Slot {
    /// Turns the slot into a terminal of `user`. If all terminals are in use, the user with the most terminals loses
    /// the oldest one, but only to a user who will still have fewer. So one user cannot take all terminals, and users
    /// cannot displace each other in turns.
    pub fn open(&self, user: &str) -> Result<(), Full> {
        let mut all = self.slots.all.lock();
        // Another browser may have taken the slot in the meantime.
        if !all.taken.contains_key(&self.number) {
            return Err(Full);
        }
        let users = all.users();
        if users.values().sum::<usize>() >= self.slots.most {
            let own = users.get(user).copied().unwrap_or_default();
            let (greedy, count) = users.iter().max_by_key(|(_, count)| **count).ok_or(Full)?;
            if *count <= own + 1 {
                return Err(Full);
            }
            all.end_oldest(|taken| taken.user.as_ref() == Some(greedy));
        }
        all.taken.get_mut(&self.number).ok_or(Full)?.user = Some(user.into());
        Ok(())
    }

    /// Completes when another browser needs the slot.
    pub async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.all.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn has_ended(slot: &Slot) -> bool {
        slot.ended().now_or_never().is_some()
    }

    #[test]
    fn waiting_browsers_take_no_terminals_and_displace_each_other() {
        let slots = Slots::new(2);
        let terminals = [slots.wait(peer(1)), slots.wait(peer(1))];
        for (terminal, user) in terminals.iter().zip(["ada", "bob"]) {
            terminal.open(user).expect("free");
        }
        let silent: Vec<Slot> = (0..20).map(|_| slots.wait(peer(1))).collect();
        let ended: Vec<bool> = silent.iter().map(has_ended).collect();
        assert!(ended[..18].iter().all(|ended| *ended), "the oldest: {ended:?}");
        assert!(ended[18..].iter().all(|ended| !ended), "the limit of waiting browsers: {ended:?}");
        assert!(terminals.iter().all(|terminal| !has_ended(terminal)));
        assert_eq!(silent[0].open("eve"), Err(Full), "it has lost its slot");
        assert_eq!(silent[19].open("eve"), Err(Full), "there are two terminals");
        drop(terminals);
        assert_eq!(silent[0].open("eve"), Err(Full));
        assert_eq!(silent[19].open("eve"), Ok(()));
        drop(silent);
        assert!(slots.all.lock().taken.is_empty());
    }

    #[test]
    fn browsers_at_one_address_displace_each_other_first() {
        let slots = Slots::new(2);
        let honest = slots.wait(peer(1));
        let flood: Vec<Slot> = (0..20).map(|_| slots.wait(peer(2))).collect();
        assert!(!has_ended(&honest));
        // With many addresses, the oldest waiting browser of all loses its slot.
        let others: Vec<Slot> = (3..5).map(|last| slots.wait(peer(last))).collect();
        assert!(has_ended(&honest) && !has_ended(&flood[19]) && !has_ended(&others[0]));
    }

    #[test]
    fn one_user_cannot_keep_all_terminals() {
        let slots = Slots::new(3);
        let open = |user: &str| {
            let slot = slots.wait(peer(1));
            slot.open(user).map(|()| slot)
        };
        let greedy: Vec<Slot> = (0..3).map(|_| open("eve").expect("free")).collect();
        assert_eq!(open("eve").err(), Some(Full), "a user cannot displace the own terminals");
        let ada = open("ada").expect("the oldest of eve");
        assert_eq!(greedy.iter().map(has_ended).collect::<Vec<_>>(), [true, false, false]);
        let bob = open("bob").expect("the next of eve");
        assert_eq!(open("eve").err(), Some(Full), "each has one");
        assert_eq!(open("max").err(), Some(Full), "each has one");
        assert!(!has_ended(&ada) && !has_ended(&bob));
    }
}
