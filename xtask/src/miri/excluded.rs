//! What does not run under Miri, and why.

use super::Reason;

const PROCESSES: Reason = "its tests start processes, which Miri cannot";

const LIBRARIES: Reason = "they load libraries that they have made by the system's compiler";

const SLOW: Reason = "more than half a minute, and other tests run the same code";

/// Test programs of which nothing runs, as `package::target`.
pub(super) const EXCLUDED_TARGETS: &[(&str, Reason)] = &[
    ("oxisycl-backend-host::fork", "it forks the process"),
    (
        "oxisycl-backend-testing::contract",
        "more than half an hour; the unit tests of the host's backend run commands on threads of their own",
    ),
    ("oxisycl-backend-testing::toy", "more than half an hour, since its thread and a waiting one take turns"),
    ("oxisycl::conformance", "its sizes and time limits are those of devices; both sanitizers run it"),
    ("oxisycl::endurance", PROCESSES),
    ("oxisycl::examples", PROCESSES),
    ("oxisycl::faults", "dozens of runs of a program of half a minute; other programs of tests inject faults, too"),
    ("oxisycl::fork", PROCESSES),
    ("oxisycl::lost_device", PROCESSES),
    ("oxisycl::math", "a million inputs of each function; mathematics has no unsafe code"),
    ("oxisycl::native", PROCESSES),
    ("oxisycl::process", PROCESSES),
    ("oxisycl::programs", "more than half a minute a program; other tests have random programs, too"),
    ("oxisycl::resize", PROCESSES),
    ("oxisycl::settings", PROCESSES),
    ("oxisycl::slow_driver", PROCESSES),
    ("oxisycl::specialized", PROCESSES),
    ("oxisycl::tour", PROCESSES),
    ("oxisycl::unfinished", "it counts the bytes of ten thousand commands in an allocator of its own"),
    ("oxisycl::waiting", "stacks of work-items, which inline assembly changes; both sanitizers run it"),
];

/// Tests that do not run, with the package or `package::target` that they belong to.
pub(super) const EXCLUDED: &[(&str, &[&str], Reason)] = &[
    (
        "oxisycl-device",
        &["math::tests::geometric_functions_keep_their_range", "math::tests::results_in_parts_make_up_the_number"],
        "inline assembly: square roots, and what `libm` asks the processor before it uses its `fma`",
    ),
    (
        "oxisycl-device",
        &[
            "vector::tests::functions::functions_with_integers_and_several_results_apply_to_each_element",
            "vector::tests::functions::geometric_functions_take_vectors",
            "vector::tests::functions::math_functions_apply_to_each_element",
        ],
        "functions of the platform's library, and the same assembly",
    ),
    (
        "oxisycl-backend-host",
        &["tests::host_memory::more_than_there_is_is_an_error_that_names_the_device"],
        "it asks for more memory than there is, and Miri ends then",
    ),
    (
        "oxisycl-backend-host::contract",
        &[
            "a_simulated_device_without_profiling_keeps_the_contract",
            "a_slow_simulated_device_without_peer_copies_keeps_the_contract",
            "simulated_devices_keep_the_contract",
            "simulated_devices_that_reorder_commands_keep_the_contract",
        ],
        "a minute and a half a device, of which they have eight; the host device runs the same checks",
    ),
    (
        "oxisycl-device",
        &[
            "tests::prints::what_is_too_deep_for_the_stack_is_left_out",
            "tests::prints::what_the_host_cannot_format_is_text",
        ],
        "the room on the stack is measured by addresses of variables, which say nothing of it in Miri",
    ),
    (
        "oxisycl-device",
        &[
            "tests::blocks::indices_are_relative_to_the_block_and_checked_against_it",
            "tests::views::a_window_is_checked_as_a_whole",
        ],
        SLOW,
    ),
    (
        "oxisycl::events",
        &["the_times_of_a_command_are_those_of_all_its_launches"],
        "a quarter of a million elements, without which a reduction has one launch",
    ),
    (
        "oxisycl-runtime",
        &[
            "program::compiling::tests::a_marker_goes_when_its_compilation_ends",
            "program::compiling::tests::a_marker_of_two_ended_processes_is_a_crash_until_it_is_removed",
            "program::compiling::tests::an_empty_marker_is_no_crash",
            "program::disk_cache::tests::a_file_that_others_can_write_or_that_is_a_link_is_not_read_but_replaced",
            "program::disk_cache::tests::a_folder_that_others_can_enter_is_not_used",
            "program::disk_cache::tests::every_damage_of_an_entry_makes_it_absent",
            "program::disk_cache::tests::folder_and_files_are_closed_to_others",
            "program::disk_cache::tests::foreign_entries_are_ignored_and_replaced",
            "program::disk_cache::tests::the_entries_that_were_used_last_are_kept",
            "program::disk_cache::tests::what_was_written_is_read_by_another_process",
            "program::disk_cache::tests::writers_and_readers_at_the_same_time_see_whole_entries",
            "program::tests::loading::a_binary_of_an_earlier_process_is_used",
        ],
        "files with permissions and locks, which Miri does not have",
    ),
    (
        "oxisycl-runtime",
        &[
            "program::disk_cache::tests::processes_that_share_a_folder_see_whole_entries",
            "program::tests::loading::a_kernel_whose_driver_ended_two_processes_is_refused_by_the_next_one",
        ],
        "they start processes",
    ),
    (
        "oxisycl-runtime",
        &[
            "plug_ins::link_unit::tests::functions_of_one_program_lie_in_one_link_unit",
            "program::tests::loading::unregistering_waits_for_native_code_of_the_library",
            "program::tests::lookup::a_kernel_that_is_launched_elsewhere_in_the_image_is_another_one",
            "program::tests::lookup::an_image_of_another_link_unit_that_disagrees_is_passed_over",
            "program::tests::lookup::different_images_of_other_link_units_are_ambiguous",
            "program::tests::lookup::the_link_unit_that_holds_the_kernel_is_preferred",
        ],
        "they ask the dynamic linker for the library of a function",
    ),
    (
        "oxisycl-runtime",
        &["schedule::pace::tests::a_pause_keeps_the_processor_while_others_want_it"],
        "it measures pauses of 0.1 ms beside threads that keep the processors busy",
    ),
    (
        "oxisycl-runtime",
        &[
            "selector::parse::tests::arbitrary_strings_never_panic",
            "selector::parse::tests::strings_of_the_grammars_pieces_never_panic",
            "state::region::tests::a_spiral_of_boxes_costs_a_bounded_number_of_passes",
        ],
        SLOW,
    ),
    (
        "oxisycl-runtime::graph",
        &[
            "pages::what_tracking_costs_follows_the_regions_in_use_and_not_the_pages",
            "programs::random_failures_leave_nothing_pending_and_no_wrong_data",
        ],
        SLOW,
    ),
    (
        "oxisycl-runtime::graph",
        &[
            "reports::a_wait_for_a_report_that_never_comes_ends_within_five_seconds_and_fails_the_test_with_the_commands_name",
        ],
        "it waits until a report is late, which Miri allows half an hour",
    ),
    (
        "oxisycl::messages",
        &[
            "a_panic_that_nothing_has_asked_for_when_the_program_ends",
            "a_selector_that_hides_all_devices",
            "an_unknown_variable",
        ],
        PROCESSES,
    ),
    (
        "oxisycl",
        &["environment::tests::misspelt_settings_are_reported_with_the_right_name"],
        "half a minute in comparisons of names, which have no unsafe code",
    ),
    ("oxisycl::bad_group", &["columns_of_a_view_in_another_shape_are_told_apart_up_to_1024_rows"], SLOW),
    ("oxisycl::errors", &["many_dependents_of_one_failure_are_summed_up"], SLOW),
    (
        "oxisycl::images",
        &[
            "kernels_of_two_libraries_run_and_not_any_more_after_one_is_unloaded",
            "the_image_of_the_kernels_own_link_unit_wins_over_those_of_libraries",
        ],
        LIBRARIES,
    ),
    (
        "oxisycl::bundles",
        &[
            "a_library_is_unloaded_while_a_bundle_of_it_is_held",
            "a_launch_gets_no_image_of_another_link_unit_if_its_own_has_one",
        ],
        LIBRARIES,
    ),
];
