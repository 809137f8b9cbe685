// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts compares the charts with what they install and with the documents: flags, rights,
// values, metrics and versions. It runs Helm without a cluster; test/integration/charts installs
// the charts.
package charts
