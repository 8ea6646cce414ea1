//! The names of the daemon's loops, for builds without the daemon.

/// A module with a type of that name for each loop.
macro_rules! absent {
    ($($module:ident: $loop:ident = $name:literal;)*) => {$(
        #[doc = concat!("The loop `", $name, "`.")]
        pub mod $module {
            #[doc = concat!("The loop `", $name, "`.")]
            pub enum $loop {}

            impl $loop {
                /// Its key below `controllers` in the configuration.
                pub const NAME: &'static str = $name;
                /// None of its code is built.
                pub const USES_API_SERVER: bool = false;
            }
        }
    )*};
}

absent! {
    bastion: BastionLoop = "bastion";
    ssh_tracker: SshTrackerLoop = "sshTracker";
    web_ssh: WebSshLoop = "webSsh";
    dashboard: DashboardLoop = "dashboard";
    exam_agent: ExamAgentLoop = "examAgent";
    login: LoginLoop = "login";
    pod_config_node: PodConfigNodeLoop = "podConfigNode";
    instance_metrics: InstanceMetricsLoop = "instanceMetrics";
}
