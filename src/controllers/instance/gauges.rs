//! The gauge `crownlabs_instances`: the number of Instances by phase and type.

use std::collections::BTreeMap;
use std::sync::Arc;

use metrics::gauge;
use parking_lot::Mutex;

use super::stores::Stores;
use crate::runtime::metrics::precise;

/// The number of Instances for each phase and type.
pub type Counts = BTreeMap<(String, String), usize>;

/// Returns a function that sets the gauge. Phases and types that no longer occur are set to 0.
pub fn instances(stores: Arc<Stores>) -> impl Fn() + Send + Sync {
    let shown = Mutex::new(Counts::new());
    move || {
        let counts = stores.count();
        let mut shown = shown.lock();
        shown.values_mut().for_each(|count| *count = 0);
        shown.extend(counts);
        for ((phase, type_), count) in shown.iter() {
            let (phase, type_) = (phase.clone(), type_.clone());
            gauge!("crownlabs_instances", "phase" => phase, "type" => type_).set(precise(*count));
        }
    }
}
