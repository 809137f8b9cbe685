// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/transcript"
)

// homeOf creates a home directory with a kubeconfig of the hub in the default place.
func homeOf(config *rest.Config, files map[string]string) string {
	GinkgoHelper()
	home := GinkgoT().TempDir()
	own := clientcmdapi.NewConfig()
	own.Clusters["hub"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	own.AuthInfos["me"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	own.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "me"}
	own.CurrentContext = "hub"
	Expect(clientcmd.WriteToFile(*own, filepath.Join(home, ".kube", "config"))).To(Succeed())
	for name, content := range files {
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(home, name), []byte(content), 0o600)).To(Succeed())
	}
	return home
}

var _ = Describe("docs/how-to/access.md", func() {
	It("shows commands that print what the page says", func(ctx SpecContext) {
		production := []string{"prod-1", "prod-2", "prod-3"}
		for _, name := range production {
			admit(ctx, name, "production")
			token, err := tokenOf(ctx, member, authenticationv1beta1.AccountNamespace, authenticationv1beta1.GatewayAccount)
			Expect(err).NotTo(HaveOccurred())
			report(ctx, name, token, member.CABundle)
			agent := connectAgent(name)
			DeferCleanup(agent.stop)
			awaitTunnel(name)
		}
		definitions, err := crds.ForHub(placementv1beta1.GroupVersion.Group)
		Expect(err).NotTo(HaveOccurred())
		for _, definition := range definitions {
			if definition.Spec.Names.Kind == "ClusterResourcePlacement" {
				expect.Created(ctx, hubClient, definition)
			}
		}
		startNode(ctx, "web-0")
		// The placement of step 2 would deliver this. Other suites test that it does.
		expect.Created(ctx, memberClient, bind("shop-developers-view", "view", group("shop-developers")))

		shown, err := transcript.Read("../../../docs/how-to/access.md")
		Expect(err).NotTo(HaveOccurred())
		files := shown.Files
		Expect(files).To(HaveLen(2))
		Expect(len(shown.Commands)).To(BeNumerically(">", 12))
		files["gateway.crt"] = string(served.ca)
		homes := map[string]string{"admin": homeOf(hub.Config(), files), "jane": homeOf(hubConfig("jane", "shop-developers"), files)}
		programs, err := env.Program("kubectl")
		Expect(err).NotTo(HaveOccurred())
		_, port, _ := strings.Cut(served.address, ":")
		// Report all differences at once.
		var differences []string
		tells := NewGomega(func(message string, _ ...int) { differences = append(differences, message) })
		const patience = 90 * time.Second
		for _, c := range shown.Commands {
			By(c.Who + "$ " + c.Line)
			Expect(homes).To(HaveKey(c.Who))
			run := func(ctx context.Context) (string, error) {
				command := exec.CommandContext(ctx, "sh", "-c", c.Line)
				command.Dir = homes[c.Who]
				command.Env = append(os.Environ(), "HOME="+homes[c.Who], "KUBECONFIG=", "GATEWAY=https://"+endpointName+":"+port,
					"PATH="+filepath.Dir(programs)+":"+os.Getenv("PATH"))
				out, err := command.CombinedOutput()
				if c.Prints != "" {
					err = nil // Rejections are shown.
				}
				return string(out), err
			}
			if strings.Contains(c.Line, " apply ") || strings.Contains(c.Line, " create ") && strings.Contains(c.Line, "binding ") || strings.Contains(c.Line, "gateway kubeconfig") {
				tells.Expect(run(ctx)).To(MatchRegexp(c.Pattern()))
				continue
			}
			// The gateway caches the hub's authorization for some seconds, and the hub has to read
			// the role first.
			tells.Eventually(run).WithContext(ctx).WithTimeout(patience).Should(MatchRegexp(c.Pattern()))
		}
		Expect(differences).To(BeEmpty())
	})
})
