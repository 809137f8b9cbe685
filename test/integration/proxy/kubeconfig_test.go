// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"fleetgate.io/fleetgate/test/support/env"
)

// withPlugin writes a kubeconfig of the hub whose user gets its credential from an exec plugin. The
// plugin records that it ran.
func withPlugin(config *rest.Config) (path, asked string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	credential, err := json.Marshal(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: string(config.CertData), ClientKeyData: string(config.KeyData)},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "credential.json"), credential, 0o600)).To(Succeed())
	asked = filepath.Join(dir, "asked")
	plugin := filepath.Join(dir, "login")
	script := fmt.Sprintf("#!/bin/sh\necho asked >> %s\nexec cat %s\n", asked, filepath.Join(dir, "credential.json"))
	Expect(os.WriteFile(plugin, []byte(script), 0o700)).To(Succeed())

	own := clientcmdapi.NewConfig()
	own.Clusters["hub"] = &clientcmdapi.Cluster{Server: hub.URL, CertificateAuthorityData: hub.CABundle}
	own.AuthInfos["me"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	own.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "me", Namespace: namespace}
	own.CurrentContext = "hub"
	path = filepath.Join(dir, "config")
	Expect(clientcmd.WriteToFile(*own, path)).To(Succeed())
	return path, asked
}

// command runs a program and fails the spec on an error.
func command(ctx context.Context, name string, arguments ...string) string {
	GinkgoHelper()
	program, err := env.Program(name)
	Expect(err).NotTo(HaveOccurred())
	c := exec.CommandContext(ctx, program, arguments...)
	c.Env = append(os.Environ(), "HOME="+GinkgoT().TempDir(), "KUBECONFIG=")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(arguments, " "), &stderr)
	return string(out)
}

var _ = Describe("gateway kubeconfig", func() {
	It("works for a user with an exec plugin and 200 groups, through both endpoints", func(ctx SpecContext) {
		var groups []string
		for i := range 200 {
			// Group names have the length of Entra ID's identifiers.
			groups = append(groups, fmt.Sprintf("%08d-0000-4000-8000-000000000000", i))
		}
		Expect(groups[0]).To(HaveLen(36))
		config, err := hub.ConfigFor(editor, append(groups, team)...)
		Expect(err).NotTo(HaveOccurred())
		own, asked := withPlugin(config)
		ca := filepath.Join(GinkgoT().TempDir(), "gateway.crt")
		Expect(os.WriteFile(ca, served.ca, 0o600)).To(Succeed())
		_, port, _ := strings.Cut(served.address, ":")

		into := filepath.Join(GinkgoT().TempDir(), "config")
		command(ctx, "gateway", "kubeconfig", memberName, "--kubeconfig="+own, "--into="+into)
		direct := filepath.Join(GinkgoT().TempDir(), "config")
		command(ctx, "gateway", "kubeconfig", memberName, "--kubeconfig="+own, "--into="+direct,
			"--endpoint=https://"+endpointName+":"+port, "--endpoint-ca-file="+ca)
		for entrance, path := range map[string]string{"the hub": into, "the gateway's own endpoint": direct} {
			By("through " + entrance)
			run := func(arguments ...string) string {
				GinkgoHelper()
				return command(ctx, "kubectl", append([]string{"--kubeconfig=" + path, "--context=hub-" + memberName}, arguments...)...)
			}
			var seen struct {
				Status struct {
					UserInfo struct {
						Username string
						Groups   []string
					}
				}
			}
			Expect(json.Unmarshal([]byte(run("auth", "whoami", "-o", "json")), &seen)).To(Succeed())
			Expect(seen.Status.UserInfo.Username).To(Equal(editor))
			Expect(seen.Status.UserInfo.Groups).To(ConsistOf(append(groups, team, "system:authenticated")))
			Expect(run("get", "configmaps", "-o", "name")).To(ContainSubstring("configmap/kube-root-ca.crt"), "the context's namespace is kept")
		}
		Expect(os.ReadFile(asked)).To(HavePrefix("asked\nasked\n"), "the user comes from the exec plugin")
		Expect(os.ReadFile(into)).NotTo(ContainSubstring("client-key-data"))
	})
})
