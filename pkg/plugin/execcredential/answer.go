// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package execcredential

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
)

// early is how long before its end a credential counts as ended: a request that is under
// way is not asked again.
const early = time.Minute

// Kind and version of what programs ask and are answered.
const kind = "ExecCredential"

// Answer reads what the caller asks, as client-go writes it into KUBERNETES_EXEC_INFO, and
// answers with a credential of own, the caller's configuration for the hub.
func Answer(ctx context.Context, info []byte, hub *Hub, own *rest.Config) (*clientauthenticationv1.ExecCredential, error) {
	if len(info) == 0 {
		return nil, errors.New("KUBERNETES_EXEC_INFO is not set: this command is for the exec section of a kubeconfig, or of the file of providers of ClusterProfiles")
	}
	var asked clientauthenticationv1.ExecCredential
	if err := json.Unmarshal(info, &asked); err != nil {
		return nil, errors.New("KUBERNETES_EXEC_INFO is not as Kubernetes writes it")
	}
	if asked.APIVersion != clientauthenticationv1.SchemeGroupVersion.String() || asked.Kind != kind {
		return nil, fmt.Errorf("the caller asks for %s of %s: set apiVersion to %s in its exec configuration", asked.Kind, asked.APIVersion, clientauthenticationv1.SchemeGroupVersion)
	}
	if err := hub.Check(asked.Spec.Cluster); err != nil {
		return nil, err
	}
	if as := own.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups)+len(as.Extra) > 0 {
		// A credential cannot say that: the program would be the one who acts, who may more.
		return nil, fmt.Errorf("your configuration for the hub acts as user %q, which no credential can hand on: choose a context without `as` for programs", as.UserName)
	}
	status, err := credentialOf(ctx, own)
	if err != nil {
		return nil, err
	}
	return &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: kind}, Status: status,
	}, nil
}

// credentialOf is what the caller proves with on the hub who they are.
func credentialOf(ctx context.Context, own *rest.Config) (*clientauthenticationv1.ExecCredentialStatus, error) {
	switch {
	case own.BearerTokenFile != "":
		text, err := os.ReadFile(own.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading your token for the hub: %w", err)
		}
		return ofToken(strings.TrimSpace(string(text))), nil
	case own.BearerToken != "":
		return ofToken(own.BearerToken), nil
	case own.ExecProvider != nil:
		return ofCommand(ctx, own)
	}
	loaded := rest.CopyConfig(own)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("reading your certificate for the hub: %w", err)
	}
	if len(loaded.CertData) == 0 || len(loaded.KeyData) == 0 {
		return nil, errors.New("your configuration for the hub has neither a token, nor a certificate, nor a command that prints one: choose another with --kubeconfig or --context")
	}
	status := &clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: string(loaded.CertData), ClientKeyData: string(loaded.KeyData)}
	if chain := certificates(loaded.CertData); len(chain) > 0 {
		status.ExpirationTimestamp = &metav1.Time{Time: chain[0].NotAfter.Add(-early)}
	}
	return status, nil
}

func ofToken(token string) *clientauthenticationv1.ExecCredentialStatus {
	status := &clientauthenticationv1.ExecCredentialStatus{Token: token}
	// Without a time callers keep a token until it is refused, and do not repeat what it was
	// refused for.
	if ends, known := endOf(token); known {
		status.ExpirationTimestamp = &metav1.Time{Time: ends.Add(-early)}
	}
	return status
}

// endOf reads when a token ends, if it is one that says so. It is not verified: that is for
// the hub.
func endOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(text, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Expires), 0), true
}

// ofCommand runs the caller's own plug-in for the hub, once more.
func ofCommand(ctx context.Context, own *rest.Config) (*clientauthenticationv1.ExecCredentialStatus, error) {
	provider := own.ExecProvider
	info := clientauthenticationv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: provider.APIVersion, Kind: kind}}
	if provider.ProvideClusterInfo {
		info.Spec.Cluster = &clientauthenticationv1.Cluster{Server: own.Host, CertificateAuthorityData: own.CAData, TLSServerName: own.ServerName}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("asking %s for your credential: %w", provider.Command, err)
	}
	command := exec.CommandContext(ctx, provider.Command, provider.Args...)
	command.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(text))
	for _, variable := range provider.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	command.Stderr = os.Stderr
	var out bytes.Buffer
	command.Stdout = &out
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("asking %s for your credential for the hub: %w", provider.Command, err)
	}
	var answered clientauthenticationv1.ExecCredential
	// What cannot be read may be a credential: it is not shown.
	if json.Unmarshal(out.Bytes(), &answered) != nil || answered.Status == nil {
		return nil, fmt.Errorf("%s did not print a credential", provider.Command)
	}
	return answered.Status, nil
}
