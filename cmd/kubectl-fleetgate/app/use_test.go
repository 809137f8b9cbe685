// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// questions records the headers of requests. Commands send several requests in parallel.
type questions struct {
	mu      sync.Mutex
	headers []http.Header
}

func (q *questions) add(header http.Header) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.headers = append(q.headers, header)
}

// take returns the headers since the last call.
func (q *questions) take() []http.Header {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.headers
	q.headers = nil
	return taken
}

// hubThatRefuses is a hub that rejects and records all requests.
func hubThatRefuses(t *testing.T) (address string, asked *questions) {
	t.Helper()
	asked = &questions{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.add(r.Header)
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// ownConfig writes a kubeconfig with current context prod for a hub, after change.
func ownConfig(t *testing.T, hub string, change func(*clientcmdapi.Config)) (file string) {
	t.Helper()
	own := clientcmdapi.NewConfig()
	own.Clusters["prod"] = &clientcmdapi.Cluster{Server: hub, InsecureSkipTLSVerify: true}
	own.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "mine"}
	own.AuthInfos["reader"] = &clientcmdapi.AuthInfo{Token: "readers"}
	own.Contexts["prod"] = &clientcmdapi.Context{Cluster: "prod", AuthInfo: "me"}
	own.CurrentContext = "prod"
	if change != nil {
		change(own)
	}
	file = filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*own, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// call runs the plugin with a kubeconfig.
func call(t *testing.T, file string, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	code = Run(t.Context(), streams, append(args, "--kubeconfig="+file, "--cache-dir="+t.TempDir()))
	return code, out.String()
}

func TestUse_KeepsUsersContextsAndClusters(t *testing.T) {
	hub, _ := hubThatRefuses(t)
	theirs := &clientcmdapi.Cluster{Server: "https://eu.example.org"}
	for name, change := range map[string]func(*clientcmdapi.Config){
		"a context": func(own *clientcmdapi.Config) {
			own.Clusters["europe"] = theirs
			own.Contexts["prod-eu"] = &clientcmdapi.Context{Cluster: "europe", AuthInfo: "me"}
		},
		"a context with its cluster": func(own *clientcmdapi.Config) {
			own.Clusters["prod-eu"] = theirs
			own.Contexts["prod-eu"] = &clientcmdapi.Context{Cluster: "prod-eu", AuthInfo: "me"}
		},
		"a cluster": func(own *clientcmdapi.Config) { own.Clusters["prod-eu"] = theirs },
	} {
		t.Run(name, func(t *testing.T) {
			file := ownConfig(t, hub, change)
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if code, said := call(t, file, "use", "eu"); code != exitFailed || !strings.Contains(said, `"prod-eu"`) {
				t.Errorf("%d: %s", code, said)
			}
			for _, args := range [][]string{{"use", "us"}, {"use", "-"}} {
				if code, said := call(t, file, args...); code != exitDone {
					t.Errorf("%v: %d: %s", args, code, said)
				}
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
				t.Errorf("%v: it was\n%s\nit is\n%s", err, before, after)
			}
		})
	}
}

func TestUse_KeepsClusterThatUserAssigned(t *testing.T) {
	hub, _ := hubThatRefuses(t)
	file := ownConfig(t, hub, func(own *clientcmdapi.Config) {
		own.Clusters["europe"] = &clientcmdapi.Cluster{Server: "https://eu.example.org"}
	})
	if code, said := call(t, file, "use", "eu"); code != exitDone {
		t.Fatal(said)
	}
	own, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own.Contexts["prod-eu"].Cluster = "europe"
	if err := clientcmd.WriteToFile(*own, file); err != nil {
		t.Fatal(err)
	}
	if code, said := call(t, file, "use", "-", "--context=prod"); code != exitDone {
		t.Fatal(said)
	}
	if own, err = clientcmd.LoadFromFile(file); err != nil || own.Clusters["europe"] == nil || own.Contexts["prod-eu"] != nil || own.Clusters["prod-eu"] != nil {
		t.Errorf("%v: left is %+v", err, own)
	}
}

func TestUse_FlagsStillApply(t *testing.T) {
	for name, test := range map[string]struct {
		args         []string
		header, want string
	}{
		"none":           {nil, "Authorization", "Bearer mine"},
		"a token":        {[]string{"--token=wrong"}, "Authorization", "Bearer wrong"},
		"a user":         {[]string{"--user=reader"}, "Authorization", "Bearer readers"},
		"as somebody":    {[]string{"--as=jane"}, "Impersonate-User", "jane"},
		"as somebody's":  {[]string{"--as=jane", "--as-uid=7"}, "Impersonate-Uid", "7"},
		"as who has one": {[]string{"--as=jane", "--as-user-extra=scope=read"}, "Impersonate-Extra-Scope", "read"},
	} {
		t.Run(name, func(t *testing.T) {
			hub, asked := hubThatRefuses(t)
			file := ownConfig(t, hub, nil)
			if code, said := call(t, file, "use", "eu"); code != exitDone {
				t.Fatal(said)
			}
			asked.take()
			if code, said := call(t, file, append([]string{"members"}, test.args...)...); code != exitFailed {
				t.Errorf("%d: %s", code, said)
			}
			if headers := asked.take(); len(headers) == 0 || headers[0].Get(test.header) != test.want {
				t.Errorf("the hub was asked with %v", headers)
			}
		})
	}
	hub, asked := hubThatRefuses(t)
	file := ownConfig(t, hub, nil)
	if code, said := call(t, file, "use", "eu"); code != exitDone {
		t.Fatal(said)
	}
	asked.take()
	for _, flag := range []string{"--certificate-authority=/does/not/exist", "--proxy-url=http://127.0.0.1:1"} {
		if code, said := call(t, file, "members", flag); code != exitFailed || len(asked.take()) != 0 {
			t.Errorf("%s is dropped: %d: %s", flag, code, said)
		}
	}
}
