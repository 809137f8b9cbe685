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

// expiryMargin is how long before its expiry a credential is reported as expired, because requests
// in flight are not retried with a new one.
const expiryMargin = time.Minute

// Kind of request and response.
const kind = "ExecCredential"

// Respond parses the request that client-go writes into KUBERNETES_EXEC_INFO, and returns the
// credential of own, the caller's configuration for the hub.
func Respond(ctx context.Context, info []byte, hub *Hub, own *rest.Config) (*clientauthenticationv1.ExecCredential, error) {
	if len(info) == 0 {
		return nil, errors.New("KUBERNETES_EXEC_INFO is not set: use this command as exec plugin in a kubeconfig, or in the file of ClusterProfile credential providers")
	}
	var asked clientauthenticationv1.ExecCredential
	if err := json.Unmarshal(info, &asked); err != nil {
		return nil, errors.New("KUBERNETES_EXEC_INFO is not a valid ExecCredential")
	}
	if asked.APIVersion != clientauthenticationv1.SchemeGroupVersion.String() || asked.Kind != kind {
		return nil, fmt.Errorf("the caller requests %s of %s: set apiVersion to %s in its exec configuration", asked.Kind, asked.APIVersion, clientauthenticationv1.SchemeGroupVersion)
	}
	if err := hub.Check(asked.Spec.Cluster); err != nil {
		return nil, err
	}
	if as := own.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups)+len(as.Extra) > 0 {
		// A credential cannot carry impersonation: the program would act with the permissions of the
		// impersonating user.
		return nil, fmt.Errorf("your configuration for the hub impersonates user %q, which a credential cannot carry: use a context without `as`", as.UserName)
	}
	status, err := credentialOf(ctx, own)
	if err != nil {
		return nil, err
	}
	return &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: kind}, Status: status,
	}, nil
}

// credentialOf is the caller's credential for the hub.
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
		return nil, errors.New("your configuration for the hub has no token, client certificate or exec plugin: select another one with --kubeconfig or --context")
	}
	status := &clientauthenticationv1.ExecCredentialStatus{ClientCertificateData: string(loaded.CertData), ClientKeyData: string(loaded.KeyData)}
	if chain := certificates(loaded.CertData); len(chain) > 0 {
		status.ExpirationTimestamp = &metav1.Time{Time: chain[0].NotAfter.Add(-expiryMargin)}
	}
	return status, nil
}

func ofToken(token string) *clientauthenticationv1.ExecCredentialStatus {
	status := &clientauthenticationv1.ExecCredentialStatus{Token: token}
	// Without an expiry, callers use a token until the server rejects it, and do not retry the
	// rejected request.
	if expiry, known := expiryOf(token); known {
		status.ExpirationTimestamp = &metav1.Time{Time: expiry.Add(-expiryMargin)}
	}
	return status
}

// expiryOf reads the expiry of a token, if it is a JWT. It does not verify the token: the hub does.
func expiryOf(token string) (time.Time, bool) {
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

// ofCommand runs the caller's own exec plugin for the hub.
func ofCommand(ctx context.Context, own *rest.Config) (*clientauthenticationv1.ExecCredentialStatus, error) {
	provider := own.ExecProvider
	info := clientauthenticationv1.ExecCredential{TypeMeta: metav1.TypeMeta{APIVersion: provider.APIVersion, Kind: kind}}
	if provider.ProvideClusterInfo {
		info.Spec.Cluster = &clientauthenticationv1.Cluster{Server: own.Host, CertificateAuthorityData: own.CAData, TLSServerName: own.ServerName}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("encoding the request for %s: %w", provider.Command, err)
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
		return nil, fmt.Errorf("running %s for your hub credential: %w", provider.Command, err)
	}
	var answered clientauthenticationv1.ExecCredential
	// Do not show output that cannot be decoded: it may contain a credential.
	if json.Unmarshal(out.Bytes(), &answered) != nil || answered.Status == nil {
		return nil, fmt.Errorf("%s did not print an ExecCredential", provider.Command)
	}
	return answered.Status, nil
}
