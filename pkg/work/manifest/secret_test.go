// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode_WritesStringDataAsData(t *testing.T) {
	secret := func(fields string) string {
		return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}` + fields + `}`
	}
	cases := map[string]struct{ written, want string }{
		"stringData only":                       {`,"stringData":{"a":"x"}`, `,"data":{"a":"eA=="}`},
		"stringData wins over data":             {`,"data":{"a":"b2xk","b":"Yg=="},"stringData":{"a":"x"}`, `,"data":{"a":"eA==","b":"Yg=="}`},
		"an empty stringData":                   {`,"data":{"a":"eA=="},"stringData":{}`, `,"data":{"a":"eA=="}`},
		"a stringData that is null":             {`,"stringData":null`, ``},
		"a value that the API server refuses":   {`,"stringData":{"a":1}`, `,"stringData":{"a":1}`},
		"data that the API server refuses":      {`,"data":"x","stringData":{"a":"x"}`, `,"data":"x","stringData":{"a":"x"}`},
		"a stringData that is no map of values": {`,"stringData":"x"`, `,"stringData":"x"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := Decode([]byte(secret(tc.written)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Encode(object)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode([]byte(secret(tc.want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, object.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestDecode_LeavesStringDataOfOtherKinds(t *testing.T) {
	object, err := Decode([]byte(`{"apiVersion":"example.com/v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, has := object.Object["stringData"]; !has {
		t.Error("the stringData of another kind is gone")
	}
}
