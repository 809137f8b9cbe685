// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	signature = "MEUCIQDx7-token_signature-Zk93vQAiB8"
	token     = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0." + signature
	other     = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.MEQCIGu1another_signature-Fq0T6wIgX"
)

func TestSearchFindsASecretInEveryForm(t *testing.T) {
	std, url := base64.StdEncoding, base64.RawURLEncoding
	for name, text := range map[string]string{
		"as it is":                             "Authorization: Bearer " + token + "\n",
		"only its signature":                   "..." + signature,
		"in JSON":                              `{"bearerToken":"` + token + `"}`,
		"in base64":                            std.EncodeToString([]byte(token)),
		"in base64 for URLs":                   url.EncodeToString([]byte(token)),
		"in base64 of JSON":                    std.EncodeToString([]byte(`{"bearerToken":"` + token + `"}`)),
		"the same a byte later":                std.EncodeToString([]byte(`{"bearerToken": "` + token + `"}`)),
		"the same two bytes later":             std.EncodeToString([]byte(`{"bearerToken" : "` + token + `"}`)),
		"in a dump of a binary body":           "Response Body:\n" + hex.Dump([]byte("k8s\x00\n\x0c"+token)),
		"in a dump whose lines a log indented": strings.ReplaceAll(hex.Dump([]byte("k8s\x00"+token)), "\n", "\n\t"),
		"in hex":                               hex.EncodeToString([]byte(token)),
	} {
		t.Run(name, func(t *testing.T) {
			if got := Search("before\n"+text+"\nafter", other, token); !slices.Equal(got, []int{1}) {
				t.Errorf("found %v in:\n%s", got, text)
			}
		})
	}
}

func TestSearchIsNotTakenInByWhatTokensHaveInCommon(t *testing.T) {
	text := strings.TrimSuffix(token, signature) + " " + base64.StdEncoding.EncodeToString([]byte(other)) + hex.Dump([]byte(other))
	if got := Search(text, token); got != nil {
		t.Errorf("found %v", got)
	}
}

func TestKeysReachesEveryMap(t *testing.T) {
	type cacheKey struct{ member, token string }
	type inner struct {
		hidden map[cacheKey]int
		synced sync.Map
		any    any
		atomic atomic.Pointer[map[string]bool]
	}
	type outer struct {
		next  *outer
		inner []*inner
	}
	value := &outer{inner: []*inner{{hidden: map[cacheKey]int{{"m1", "in-a-struct"}: 1}, any: map[any]bool{"in-an-interface": true}}}}
	value.next = value
	value.inner[0].atomic.Store(&map[string]bool{"behind-an-atomic-pointer": true})
	value.inner[0].synced.Store("in-a-sync-map", "never-a-key")
	keys := Keys([]string{"fleetgate.io/fleetgate/"}, value, map[string]map[[2]string]bool{"outside": {{"in-an-array", ""}: true}})
	for _, want := range []string{"in-a-struct", "in-an-interface", "in-a-sync-map", "behind-an-atomic-pointer", "in-an-array", "outside"} {
		if !strings.Contains(keys, want) {
			t.Errorf("no key %q in:\n%s", want, keys)
		}
	}
	if strings.Contains(keys, "never-a-key") {
		t.Error("a value passes for a key")
	}
	if keys := Keys([]string{"elsewhere.io/"}, value); keys != "" {
		t.Errorf("keys of a package that nobody asked for:\n%s", keys)
	}
}
