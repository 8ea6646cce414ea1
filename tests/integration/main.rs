//! The daemon on a real control plane, as an administrator runs it: its binary, its configuration file, its manifests.
//! Most tests share one control plane. Each test has its own namespaces and its own daemon; the selector label keeps
//! the daemons apart.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../golden/mod.rs"]
mod golden;

mod comparable;
mod course;
mod daemon;
mod events;
mod lab;
mod numbers;

mod access;
mod announcements;
mod api_faults;
mod bad_input;
mod bare_cluster;
mod bastion;
mod broken_kind;
mod causes;
mod class;
mod compatibility;
mod crash;
mod definitions;
mod election;
mod ended_daemon;
mod environments;
mod exam_agent;
mod exam_server;
mod expiration;
mod explain;
mod exporter;
mod exposition;
mod exposure;
mod first_rounds;
mod heal;
mod hostile;
mod image_list;
mod impersonation;
mod inactivity;
mod installations;
mod instance_metrics;
mod isolation;
mod keycloak;
mod kstatus;
mod layouts;
mod machine_hosts;
mod machine_login;
mod mail;
mod manager_keys;
mod messages;
mod mirrors;
mod missing_crds;
mod official_page;
mod operations;
mod outages;
mod pod_config;
mod pod_config_node;
mod pod_security;
mod policies;
mod prometheus;
mod quiet;
mod rbac;
mod receipts;
mod recorded;
mod restart;
mod restored;
mod route_policy;
mod rules;
mod samples;
mod served_fields;
mod shared_volumes;
mod snapshot_trouble;
mod snapshots;
mod soak;
mod ssh_tracker;
mod stale;
mod status;
mod stop;
mod submission;
mod takeover;
mod tenants;
mod termination;
mod trust;
mod uploader;
mod uploads;
mod web_ssh;
mod webhook;
