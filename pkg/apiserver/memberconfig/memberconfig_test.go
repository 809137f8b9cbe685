// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// configOf has one context of that name, for a server.
func configOf(name, server string) *clientcmdapi.Config {
	c := clientcmdapi.NewConfig()
	c.CurrentContext = name
	c.Clusters[name] = &clientcmdapi.Cluster{Server: server}
	c.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "mine"}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "me"}
	return c
}

func TestAddTo_OverwritesNothing(t *testing.T) {
	const server = "https://hub/eu"
	for name, test := range map[string]struct {
		present func(*clientcmdapi.Config)
		want    string
	}{
		"another file":                {func(c *clientcmdapi.Config) { *c = *configOf("other", server) }, ""},
		"the same":                    {func(*clientcmdapi.Config) {}, ""},
		"the same, with a namespace":  {func(c *clientcmdapi.Config) { c.Contexts["prod-eu"].Namespace = "shop" }, ""},
		"a cluster that is another":   {func(c *clientcmdapi.Config) { c.Clusters["prod-eu"].Server = "https://elsewhere" }, `another cluster "prod-eu"`},
		"a context that is another":   {func(c *clientcmdapi.Config) { c.Contexts["prod-eu"].Cluster = "europe" }, `another context "prod-eu"`},
		"a context of somebody else":  {func(c *clientcmdapi.Config) { c.Contexts["prod-eu"].AuthInfo = "reader" }, `another context "prod-eu"`},
		"a user with another's token": {func(c *clientcmdapi.Config) { c.AuthInfos["me"].Token = "other" }, `another user "me"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			present := configOf("prod-eu", server)
			test.present(present)
			if err := clientcmd.WriteToFile(*present, file); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			err = AddTo(file, configOf("prod-eu", server))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			after, readErr := os.ReadFile(file)
			if readErr != nil || (err != nil || present.Contexts["prod-eu"] != nil) && !bytes.Equal(before, after) {
				t.Errorf("%v: it was\n%s\nit is\n%s", readErr, before, after)
			}
			if err == nil && !strings.Contains(string(after), "name: prod-eu") {
				t.Errorf("it is not there:\n%s", after)
			}
		})
	}
}
