//! Calendars and durations.

use chrono::{Datelike as _, Days, Months, NaiveDate, TimeDelta, Timelike as _};
use time::{Date, Duration, Month, OffsetDateTime, UtcOffset};

use crate::harness::{Env, kernels, scramble};

kernels![chrono, time];

fn chrono(env: &Env) {
    env.compare(|i| {
        let days = (scramble(i) % 100_000) as u64;
        let date = NaiveDate::from_ymd_opt(1900, 2, 28).and_then(|date| date.checked_add_days(Days::new(days)));
        let date = date.and_then(|date| date.checked_add_months(Months::new(i as u32 % 40))).unwrap_or_default();
        let moment =
            date.and_hms_opt(i as u32 % 24, 59, 58).unwrap_or_default() + TimeDelta::milliseconds(i as i64 * 999);
        let week = moment.iso_week();
        (date.num_days_from_ce(), date.ordinal(), week.week() + moment.second(), moment.and_utc().timestamp_millis())
    });
}

fn time(env: &Env) {
    env.compare(|i| {
        let moment =
            OffsetDateTime::from_unix_timestamp(i64::from(scramble(i) as i32)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let local = moment.to_offset(UtcOffset::from_hms(2, 30, 0).unwrap_or(UtcOffset::UTC));
        let easter = Date::from_calendar_date(2024, Month::March, 31).unwrap_or(Date::MIN);
        let distance = local.date() - easter;
        let later = local + Duration::hours(i as i64);
        (local.to_julian_day(), distance.whole_weeks(), later.weekday().number_from_monday(), later.iso_week())
    });
}
