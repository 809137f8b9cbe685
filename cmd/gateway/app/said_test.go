// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/test/golden"
)

func TestHelpSaysWhatItSaid(t *testing.T) {
	var text strings.Builder
	var say func(command *cobra.Command)
	say = func(command *cobra.Command) {
		fmt.Fprintf(&text, "== %s\n%s\n%s", command.CommandPath(), command.Long, command.UsageString())
		for _, of := range command.Commands() {
			say(of)
		}
	}
	say(NewCommand())
	golden.Text(t, "help.txt", text.String())
}

// refused are command lines with flags that no gateway starts with.
var refused = []string{
	"--components=proxy,x --apis=fleet,y", "--components= --apis=", "--apis=gateway", "--apis=rancher,clusterprofile,fleet-azure,msa",
	"--secure-port=0 --webhook-port=70000 --agents-port=-1 --peer-port=65536", "--secure-port=9443",
	"--metrics-bind-address=x --health-probe-bind-address=0 --bind-address=here",
	"--webhook-caller=nobody", "--webhook-caller=certificate", "--webhook-client-ca-file=ca.pem",
	"--peers=here,one:8092", "--peers=here --peer-port=8092", "--agents-address=here", "--agents-client-ca-file=ca.pem",
	"--max-requests-per-member=0 --max-requests-per-user=-1 --max-long-requests-per-member=0 --max-long-requests-per-user=-7",
	"--adopt --external-name=gateway.example.com", "--argocd-namespace=Argo_CD", "--argocd-namespace=", "--hub-url=http://hub", "--hub-url=https://",
	"--konnectivity-agents --konnectivity-frontends-address=8090 --konnectivity-allow=10.0.0.1",
	"--konnectivity-replicas=-1 --konnectivity-streams=0", "--konnectivity-replicas=17 --konnectivity-streams=17",
	"--konnectivity-apiserver=kubernetes.default.svc", "--konnectivity-apiserver=10.0.0.1:99999",
	"--agents-address=gateway:8091 --agents-client-ca-file=ca.pem --konnectivity-frontends-ca-file=ca.pem",
	"--agent-token-lifetime=1m", "--agent-token-lifetime=9000h", "--guard-rails=all --certificates=x --confirm-delete=maybe --authorize-authors=some",
	"--helm-chart-registries=ghcr.io/acme,https://ghcr.io", "--helm-chart-credentials=/nowhere/config.json", "--confirm-delete-members=-1",
	"--certificates=files --tls-cert-file=tls.crt", "--tls-cert-file=a --tls-private-key-file=b --tls-ca-file=c",
	"--certificates=files --tls-cert-file=a --tls-private-key-file=b --tls-ca-file=c --endpoint-names=a",
	"--endpoint-names=https://gateway,gateway.example.com,*.example.com,192.0.2.1,::1,a_b", "--audit-policy-file=policy.yaml", "--audit-log-path=-",
	"--tracing-endpoint=collector --tracing-sampling-rate-per-million=2000000", "--tracing-endpoint=a:4317 --tracing-sampling-rate-per-million=-1",
	"--cluster-unhealthy-threshold=0s --force-delete-wait-time=-1s", "--registration-namespaces=", "--infinite-token-approval=always",
	"--registration-policy=closed --self-assigned-labels=drop", "--registration-policy=strict --infinite-token-approval=auto",
}

func TestRefusalsSayWhatTheySaid(t *testing.T) {
	var text strings.Builder
	for _, line := range refused {
		given, flags := options.New(), pflag.NewFlagSet("", pflag.ContinueOnError)
		given.AddFlags(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		err := given.Validate()
		if err == nil {
			t.Fatalf("%s is not refused", line)
		}
		said := strings.Split(err.Error(), "\n")
		slices.Sort(said)
		fmt.Fprintf(&text, "== %s\n%s\n", line, strings.Join(said, "\n"))
	}
	golden.Text(t, "refusals.txt", text.String())
}
