//! Native code of kernels for a level of the host's processors, in libraries that are loaded and unloaded. Some of them are optimised as a
//! whole.

use crate::project::{Project, succeed};
use crate::{open_and_close, plug_ins};

#[test]
fn native_code_of_libraries_comes_and_goes_with_them() {
    let project = Project::new("native");
    let has_level = std::arch::is_x86_feature_detected!("avx2");
    // The second one with link-time optimisation.
    for profile in ["quick", "thin"] {
        let packages = ["--package", "shared", "--package", "second"];
        let build = ["build", "--profile", profile, "--targets", "host-v3", "--lanes", "8"].into_iter().chain(packages);
        succeed(&mut project.sycl_as_is(&build.collect::<Vec<_>>()));
        open_and_close(&project, profile, |command| {
            for (code, counts) in [("plain", "0 0"), ("v3", "3 4")] {
                if code == "plain" || has_level {
                    let (output, errors) = succeed(command.arg("counted").env("OXISYCL_HOST_CODE", code));
                    assert_eq!(output, format!("42 31 1 31 3 42 {counts} closed\n"), "{command:?}: {errors}");
                }
            }
        });
    }
    plug_ins::take_their_native_code_with_them(&project, has_level);
}
