//! Tests against the real kernel, in network namespaces that the tests create.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// A network namespace that is removed on drop.
struct Made(String);

impl Made {
    fn new(name: &str) -> Self {
        let name = format!("nl{}{name}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status().expect("ip runs");
        assert!(made.success(), "the tests of network namespaces must run as root");
        Self(name)
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.0)
    }

    fn open(&self) -> Namespace {
        Namespace::open(&self.path()).expect("a namespace")
    }

    fn ip(&self, arguments: &str) -> String {
        let done =
            Command::new("ip").args(["-n", &self.0]).args(arguments.split(' ')).output().expect("ip runs");
        assert!(done.status.success(), "ip {arguments}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn end(name: &str) -> NewLink {
    NewLink { name: name.to_owned(), mac: Mac::derived(&[name]) }
}

fn address(link: u32, text: &str) -> Address {
    Address { link, net: text.parse().expect("an address") }
}

#[tokio::test]
async fn a_pair_is_created_in_one_step_and_deleted_as_one() {
    let (node, pod) = (Made::new("node"), Made::new("pod"));
    let mut events = Events::of(node.path()).await.expect("events");
    let (node_space, pod_space) = (node.open(), pod.open());
    in_thread(move |thread| {
        let mut here = thread.socket(&node_space).expect("a socket");
        let mut there = thread.socket(&pod_space).expect("a socket");
        here.create_bridge(&end("labbr0")).expect("a bridge");
        let bridge = here.link_named("labbr0").expect("an answer").expect("the bridge");
        assert_eq!(
            (bridge.kind.as_str(), bridge.is_up, bridge.mac),
            ("bridge", true, Some(end("labbr0").mac))
        );
        let taken = here.create_bridge(&end("labbr0")).map_err(|error| error.kind());
        assert_eq!(taken, Err(std::io::ErrorKind::AlreadyExists));
        here.add_address(&address(bridge.index, "10.77.0.1/24")).expect("an address");
        here.add_address(&address(bridge.index, "10.77.0.1/24"))
            .expect("adding an existing address succeeds");

        let pair = Pair { here: end("hdata4711"), master: bridge.index, there: end("data4711") };
        here.create_pair(&pair, &pod_space).expect("a pair");
        let host = here.link_named("hdata4711").expect("an answer").expect("the host end");
        assert_eq!((host.master, host.is_up, host.is_operational), (bridge.index, true, false));
        assert_eq!((host.kind.as_str(), host.mac), ("veth", Some(pair.here.mac)));
        let inner = there.link_named("data4711").expect("an answer").expect("the pod end");
        assert_eq!((inner.index, inner.peer, inner.is_up), (host.peer, host.index, false));
        assert_eq!(inner.mac, Some(pair.there.mac));

        here.set_alias(host.index, "a mark").expect("an alias");
        there.add_address(&address(inner.index, "10.77.0.2/24")).expect("an address");
        there.add_address(&address(inner.index, "fd00:7::2/64")).expect("an address");
        there.set_up(inner.index).expect("up");
        announce(thread, address(0, "10.77.0.2/24").net).expect("sent");
        announce(thread, address(0, "fd00:7::2/64").net).expect("sent");
        let found = here.link(host.index).expect("an answer").expect("the host end");
        assert_eq!(found.alias, "a mark");
        there.set_alias(inner.index, &"a".repeat(254)).expect("the longest alias");
        let again = Pair { here: end("hother"), ..pair };
        let taken = here.create_pair(&again, &pod_space).map_err(|error| error.kind());
        assert_eq!(taken, Err(std::io::ErrorKind::AlreadyExists));
        assert_eq!(here.link_named("hother").expect("an answer"), None, "neither end is left behind");
        let ours = there.addresses().expect("addresses");
        for wanted in ["10.77.0.2/24", "fd00:7::2/64"] {
            assert!(ours.contains(&address(inner.index, wanted)), "{ours:?}");
        }
        let range: ipnet::IpNet = "10.77.0.0/25".parse().expect("a range");
        let routes = here.routes_into(&[range]).expect("routes");
        assert_eq!(routes.iter().map(|route| route.link).collect::<Vec<_>>(), [bridge.index]);
        assert_eq!(here.routes_into(&["10.78.0.0/24".parse().expect("a range")]).expect("routes"), []);
    })
    .await
    .expect("the thread ends");
    let shown = pod.ip("addr show dev data4711");
    assert!(
        shown.contains("inet 10.77.0.2/24 brd 10.77.0.255")
            && shown.contains("inet6 fd00:7::2/64 scope global nodad \n"),
        "{shown}"
    );

    ends(&node, &pod, &mut events).await;
}

/// Checks that the node has a neighbour entry for the pod, deletes the pair, and checks that all changes were reported.
async fn ends(node: &Made, pod: &Made, events: &mut Events) {
    // The announcement creates the node's neighbour entry; the node has sent no request.
    let begin = std::time::Instant::now();
    while !node.ip("neigh show dev labbr0").contains(&end("data4711").mac.to_string()) {
        assert!(begin.elapsed().as_secs() < 20, "{}", node.ip("neigh show"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    let node_space = node.open();
    in_thread(move |thread| {
        let mut here = thread.socket(&node_space).expect("a socket");
        let host = here.link_named("hdata4711").expect("an answer").expect("the host end");
        here.delete_link(host.index).expect("deleted");
        here.delete_link(host.index).expect("deleting a deleted link succeeds");
        assert_eq!(here.link(host.index).expect("an answer"), None);
        let refused = here.set_up(host.index).map_err(|error| error.raw_os_error());
        assert_eq!(refused, Err(Some(libc::ENODEV)));
        let bridge = here.link_named("labbr0").expect("an answer").expect("the bridge");
        let gateway = address(bridge.index, "10.77.0.1/24");
        here.remove_address(&gateway).expect("removed");
        here.remove_address(&gateway).expect("removing a removed address succeeds");
        assert!(!here.addresses().expect("addresses").contains(&gateway));
    })
    .await
    .expect("the thread ends");
    assert!(!pod.ip("link show").contains("data4711"));
    let (mut is_made, mut is_addressed, mut is_renamed) = (false, false, false);
    while !(is_made && is_addressed && is_renamed) {
        for event in events.next().await.expect("events") {
            match event {
                Event::Link(link) => {
                    is_made |= link.name == "hdata4711";
                    is_renamed |= link.alias == "a mark";
                }
                Event::Address(found) => is_addressed |= found.net == address(0, "10.77.0.1/24").net,
                Event::Lost => panic!("too few events to lose any"),
            }
        }
    }
}

#[tokio::test]
async fn a_list_in_many_parts_is_complete() {
    const LINKS: usize = 100;
    let node = Made::new("many");
    let space = node.open();
    in_thread(move |thread| {
        let mut socket = thread.socket(&space).expect("a socket");
        let names: Vec<String> = (0..LINKS).map(|number| format!("br{number}")).collect();
        for (number, name) in names.iter().enumerate() {
            socket.create_bridge(&end(name)).expect("a bridge");
            let index = socket.link_named(name).expect("an answer").expect("the bridge").index;
            socket.add_address(&address(index, &format!("10.77.{number}.1/24"))).expect("an address");
        }
        let links = socket.links().expect("links");
        let of: Vec<_> = links.iter().map(|link| (&link.name, link.kind.as_str())).collect();
        assert!(names.iter().all(|name| of.contains(&(name, "bridge"))), "{of:?}");
        assert_eq!(links.len(), LINKS + 1, "and the loopback device");
        let addresses = socket.addresses().expect("addresses");
        assert_eq!(addresses.iter().filter(|address| address.net.prefix_len() == 24).count(), LINKS);
        let range = "10.77.0.0/16".parse().expect("a range");
        assert_eq!(socket.routes_into(&[range]).expect("routes").len(), LINKS);
    })
    .await
    .expect("the thread ends");
}

#[tokio::test]
async fn a_link_that_cannot_be_parsed_is_an_error() {
    let node = Made::new("odd");
    node.ip("link add fine up type bridge");
    node.ip("link add odd up type bridge");
    let mut events = Events::of(node.path()).await.expect("events");
    // The library parses only UTF-8 texts.
    let alias = std::ffi::OsStr::from_bytes(&[0xff]);
    let set = Command::new("ip").args(["-n", &node.0, "link", "set", "odd", "alias"]).arg(alias).status();
    assert!(set.expect("ip runs").success());
    while !events.next().await.expect("events").contains(&Event::Lost) {}
    let space = node.open();
    in_thread(move |thread| {
        let mut socket = thread.socket(&space).expect("a socket");
        assert!(socket.link_named("fine").expect("an answer").is_some());
        let error = socket.links().expect_err("one link cannot be parsed");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().starts_with("1 of 3 kernel messages"), "{error}");
        let error = socket.link_named("odd").expect_err("the link exists");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
        socket.addresses().expect("addresses are not affected");
    })
    .await
    .expect("the thread ends");
}

#[tokio::test]
async fn an_overflow_of_unread_changes_is_reported() {
    let node = Made::new("flood");
    let mut events = Events::of(node.path()).await.expect("events");
    let space = node.open();
    in_thread(move |thread| {
        let mut socket = thread.socket(&space).expect("a socket");
        let lo = socket.link_named("lo").expect("an answer").expect("the loopback device").index;
        // The kernel reports a changed alias only for a link that is up.
        socket.set_up(lo).expect("up");
        for number in 0..1000 {
            socket.set_alias(lo, &format!("number {number}")).expect("an alias");
        }
    })
    .await
    .expect("the thread ends");
    let told = events.next().await.expect("events");
    assert_eq!(told, [Event::Lost]);
    // Later changes are reported again.
    node.ip("link set lo alias last");
    let is_told = async {
        let is_last = |event: &Event| matches!(event, Event::Link(lo) if lo.alias == "last");
        while !events.next().await.expect("events").iter().any(is_last) {}
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), is_told).await.expect("the change is reported");
}

#[tokio::test]
async fn handles_of_one_namespace_have_one_id_and_other_threads_stay() {
    let (one, other) = (Made::new("one"), Made::new("other"));
    assert_eq!(one.open().id, one.open().id);
    assert_ne!(one.open().id, other.open().id);
    let before = Namespace::open("/proc/thread-self/ns/net".as_ref()).expect("the thread's namespace").id;
    let inside = one.open();
    let wanted = inside.id;
    let seen = in_thread(move |thread| {
        thread.enter(&inside).expect("entered");
        Namespace::open("/proc/thread-self/ns/net".as_ref()).expect("the thread's namespace").id
    });
    assert_eq!(seen.await.expect("the thread ends"), wanted);
    let after = Namespace::open("/proc/thread-self/ns/net".as_ref()).expect("the thread's namespace").id;
    assert_eq!(before, after);
    let panics = in_thread(|_| panic!("a defect")).await.map_err(|error| error.to_string());
    assert_eq!(panics, Err::<(), _>("the thread has panicked".to_owned()));
}
