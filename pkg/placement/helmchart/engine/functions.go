// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"text/template"
)

// refusedFunctions are those whose result is not a function of their arguments.
func refusedFunctions() map[string][]string {
	return map[string][]string{
		"returns another value each time: put the value into values.yaml": {
			"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4",
			"bcrypt", "htpasswd", "encryptAES",
		},
		"creates another key each time: create it on the member, for example with cert-manager, or put it into the values": {
			"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
		},
		"depends on the time at which the chart is rendered: put the value into values.yaml": {
			"now", "ago", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
			"htmlDate", "htmlDateInZone", "toDate", "mustToDate", "unixEpoch",
		},
		"is not there: a chart is rendered without network and environment": {"getHostByName", "env", "expandenv"},
	}
}

// functions replace Helm's own.
func functions() template.FuncMap {
	own := template.FuncMap{"keys": sortedKeys, "values": sortedValues}
	for reason, names := range refusedFunctions() {
		for _, name := range names {
			own[name] = func(...any) (string, error) { return "", fmt.Errorf("%s %s", name, reason) }
		}
	}
	return own
}

// sortedKeys are the keys of maps, sorted within each.
func sortedKeys(all ...map[string]any) []string {
	keys := []string{}
	for _, one := range all {
		keys = append(keys, slices.Sorted(maps.Keys(one))...)
	}
	return keys
}

// sortedValues are the values of a map in the order of their keys.
func sortedValues(of map[string]any) []any {
	values := []any{}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		values = append(values, of[key])
	}
	return values
}
