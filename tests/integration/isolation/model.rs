//! A model of the rules of `NetworkPolicies`, as the Kubernetes documentation describes them: policies only allow, they
//! add up, and a connection needs both the egress of its source and the ingress of its destination. A block of addresses
//! applies to pods, too, as most network plugins implement it.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

/// One end of a connection.
#[derive(Clone)]
pub struct End {
    pub address: IpAddr,
    /// The namespace and the labels, if it is a pod.
    pub pod: Option<(String, Value)>,
}

impl End {
    /// An address that is not of a pod.
    pub fn outside(address: &str) -> Self {
        Self { address: address.parse().expect("an address"), pod: None }
    }

    /// A pod. All pods have the same address, which is in the pod network.
    pub fn pod(namespace: &str, labels: &Value) -> Self {
        let pod = Some((namespace.to_owned(), labels.clone()));
        Self { pod, ..Self::outside("10.244.0.9") }
    }
}

/// The namespaces and policies of a cluster.
pub struct Network {
    pub namespaces: Vec<Value>,
    pub policies: Vec<Value>,
}

impl Network {
    /// Whether `from` can connect to a port of `to`.
    pub fn connects(&self, from: &End, to: &End, protocol: &str, port: u16) -> bool {
        let port = (protocol, port);
        self.allows("Egress", from, to, port) && self.allows("Ingress", to, from, port)
    }

    /// Whether the policies for one direction of an end's traffic allow the other end.
    fn allows(&self, direction: &str, end: &End, other: &End, port: (&str, u16)) -> bool {
        let Some((namespace, labels)) = &end.pod else { return true };
        let applies = |policy: &&Value| {
            let types = policy["spec"]["policyTypes"].as_array().expect("the API server sets them");
            policy["metadata"]["namespace"] == **namespace
                && types.iter().any(|type_| type_ == direction)
                && selects(&policy["spec"]["podSelector"], labels)
        };
        let mut policies = self.policies.iter().filter(applies).peekable();
        let (rules, peers) = if direction == "Egress" { ("egress", "to") } else { ("ingress", "from") };
        policies.peek().is_none()
            || policies.any(|policy| {
                items(&policy["spec"][rules]).iter().any(|rule| {
                    let is_peer = |peer: &Value| self.is_peer(peer, namespace, other);
                    all_or_any(&rule[peers], is_peer)
                        && all_or_any(&rule["ports"], |wanted| is_port(wanted, port))
                })
            })
    }

    /// Whether an end is a peer of a rule in this namespace.
    fn is_peer(&self, peer: &Value, namespace: &str, end: &End) -> bool {
        if let Some(block) = peer.get("ipBlock") {
            let is_in = |cidr: &Value| {
                let network: IpNet = cidr.as_str().expect("text").parse().expect("a network");
                network.contains(&end.address)
            };
            return is_in(&block["cidr"]) && !items(&block["except"]).iter().any(is_in);
        }
        let Some((of_end, labels)) = &end.pod else { return false };
        let is_namespace = match peer.get("namespaceSelector") {
            None => of_end == namespace,
            Some(selector) => {
                let found = self.namespaces.iter().find(|found| found["metadata"]["name"] == **of_end);
                found.is_some_and(|found| selects(selector, &found["metadata"]["labels"]))
            }
        };
        is_namespace && peer.get("podSelector").is_none_or(|selector| selects(selector, labels))
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a list is empty, which stands for everything, or one of its items fits.
fn all_or_any(list: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    let list = items(list);
    list.is_empty() || list.iter().any(fits)
}

fn is_port(wanted: &Value, (protocol, port): (&str, u16)) -> bool {
    let is_number = match &wanted["port"] {
        Value::Null => true,
        number => *number == port,
    };
    wanted["protocol"].as_str().unwrap_or("TCP") == protocol && is_number
}

/// Whether a label selector selects an object with these labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    let none = Map::new();
    let mut exact = selector["matchLabels"].as_object().unwrap_or(&none).iter();
    let fits = |expression: &Value| {
        let value = labels.get(expression["key"].as_str().expect("a key"));
        let is_listed = value.is_some_and(|value| items(&expression["values"]).contains(value));
        match expression["operator"].as_str().expect("an operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            other => panic!("unknown operator {other}"),
        }
    };
    exact.all(|(key, value)| labels.get(key) == Some(value))
        && items(&selector["matchExpressions"]).iter().all(fits)
}

/// A policy in the namespace `a`.
fn policy(spec: &Value) -> Value {
    json!({"metadata": {"namespace": "a"}, "spec": spec})
}

fn network(specs: &[&Value]) -> Network {
    let named = |name: &str| json!({"metadata": {"name": name, "labels": {"name": name}}});
    Network {
        namespaces: vec![named("a"), named("b")],
        policies: specs.iter().map(|spec| policy(spec)).collect(),
    }
}

#[test]
fn policies_only_allow_and_add_up() {
    let (one, two) = (End::pod("a", &json!({"app": "one"})), End::pod("a", &json!({"app": "two"})));
    let foreign = End::pod("b", &json!({}));
    let connects = |specs: &[&Value], from: &End, to: &End| network(specs).connects(from, to, "TCP", 80);
    assert!(connects(&[], &foreign, &one), "no policy, no restriction");
    let closed = json!({"podSelector": {"matchLabels": {"app": "one"}}, "policyTypes": ["Ingress"]});
    assert!(!connects(&[&closed], &two, &one));
    assert!(connects(&[&closed], &one, &two), "the other pod and the other direction are free");
    let from =
        |peer: &Value| json!({"podSelector": {}, "ingress": [{"from": [peer]}], "policyTypes": ["Ingress"]});
    let same = from(&json!({"podSelector": {}}));
    assert!(connects(&[&closed, &same], &two, &one));
    assert!(!connects(&[&closed, &same], &foreign, &one));
    let of_b = from(&json!({"namespaceSelector": {"matchLabels": {"name": "b"}}}));
    assert!(connects(&[&closed, &of_b], &foreign, &one) && !connects(&[&closed, &of_b], &two, &one));
}

#[test]
fn blocks_exceptions_ports_and_expressions_are_respected() {
    let pod = End::pod("a", &json!({"exam": "true"}));
    let except = json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}});
    let spec = |pods: &Value| {
        let dns = json!({"to": [{"ipBlock": {"cidr": "10.0.0.53/32"}}], "ports": [{"port": 53, "protocol": "UDP"}]});
        json!({"podSelector": pods, "egress": [{"to": [except]}, dns], "policyTypes": ["Egress"]})
    };
    let expression = |operator: &str, values: &Value| json!({"matchExpressions": [{"key": "exam", "operator": operator, "values": values}]});
    let connects = |pods: &Value, to: &str, protocol: &str, port: u16| {
        network(&[&spec(pods)]).connects(&pod, &End::outside(to), protocol, port)
    };
    let all = json!({});
    assert!(connects(&all, "192.0.2.1", "TCP", 443));
    assert!(!connects(&all, "10.0.0.1", "TCP", 443));
    assert!(!connects(&all, "2001:db8::1", "TCP", 443), "no rule has IPv6");
    assert!(connects(&all, "10.0.0.53", "UDP", 53));
    assert!(!connects(&all, "10.0.0.53", "TCP", 53) && !connects(&all, "10.0.0.53", "UDP", 54));
    let (none, listed) = (json!([]), json!(["true"]));
    for (operator, values, is_selected) in [
        ("Exists", &none, true),
        ("DoesNotExist", &none, false),
        ("In", &listed, true),
        ("NotIn", &listed, false),
    ] {
        let is_free = connects(&expression(operator, values), "10.0.0.1", "TCP", 443);
        assert_eq!(is_free, !is_selected, "{operator}");
    }
}
