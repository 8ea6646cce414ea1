//! The newest known version of each object that the stand-in watches.

use std::collections::{HashMap, HashSet};

use kube::ResourceExt as _;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

/// The kinds that the stand-in watches or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `VirtualMachine`.
    Machine,
    /// `VirtualMachineInstance`.
    Instance,
    /// `DataVolume`.
    DataVolume,
    /// `PersistentVolumeClaim`.
    Claim,
    /// `PersistentVolume`.
    Volume,
    /// The `Pod` that a machine runs in; other pods are not watched.
    Launcher,
    /// `Service`.
    Service,
}

impl Kind {
    /// The resource, for dynamic requests.
    pub fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Machine => ("kubevirt.io", "v1", "VirtualMachine"),
            Self::Instance => ("kubevirt.io", "v1", "VirtualMachineInstance"),
            Self::DataVolume => ("cdi.kubevirt.io", "v1beta1", "DataVolume"),
            Self::Claim => ("", "v1", "PersistentVolumeClaim"),
            Self::Volume => ("", "v1", "PersistentVolume"),
            Self::Launcher => ("", "v1", "Pod"),
            Self::Service => ("", "v1", "Service"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    /// The label selector of the watch.
    pub fn selector(self) -> Option<&'static str> {
        (self == Self::Launcher).then_some("kubevirt.io=virt-launcher")
    }
}

/// The kind, namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for a `PersistentVolume`.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn of(kind: Kind, object: &DynamicObject) -> Self {
        Self { kind, namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }

    /// The key of another object in the same namespace.
    pub fn sibling(&self, kind: Kind, name: &str) -> Self {
        Self { kind, namespace: self.namespace.clone(), name: name.to_owned() }
    }
}

/// The watched objects.
#[derive(Default)]
pub struct Cache {
    objects: HashMap<Key, DynamicObject>,
    /// Uids of deleted objects: the answer to a write may arrive after the event that the object is deleted.
    gone: HashSet<String>,
    /// The API server's reasons for rejected creations (mostly a quota), by the object to be created.
    pub refusals: HashMap<Key, String>,
}

impl Cache {
    /// The object, if it is known.
    pub fn get(&self, key: &Key) -> Option<&DynamicObject> {
        self.objects.get(key)
    }

    /// Stores an object from an event or an answer, unless a newer version is known. Returns whether it was stored.
    pub fn put(&mut self, kind: Kind, object: DynamicObject) -> bool {
        let key = Key::of(kind, &object);
        if object.uid().is_some_and(|uid| self.gone.contains(&uid)) {
            return false;
        }
        let known = self.objects.get(&key).map(version);
        let is_news = known.is_none_or(|known| known < version(&object));
        if is_news {
            self.objects.insert(key, object);
        }
        is_news
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &Key) {
        let removed = self.objects.remove(key);
        self.gone.extend(removed.and_then(|object| object.uid()));
    }

    /// The known keys of a kind.
    pub fn keys(&self, kind: Kind) -> Vec<Key> {
        self.objects.keys().filter(|key| key.kind == kind).cloned().collect()
    }
}

/// The resource version as a number. Versions of one API server can be compared.
fn version(object: &DynamicObject) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}
